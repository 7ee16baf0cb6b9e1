"""When another engine than torch's operations computes a network: where it can, and where it pays or SUITE_ENGINE insists.

It is an engine, not a setting of a run: numbers agree to rounding, ids do not change. What this module imports at its top does without
numba, which takes a second to import and must not start before a process forks (methods/warm.py).
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, ref

import torch
from torch import Tensor, nn

from methods.core import settings
from methods.core.errors import UserError
from methods.networks.resnet import Net

if TYPE_CHECKING:
    from methods.sparse.engine import Engine

DENSE, SPARSE, COMPILED = "dense", "sparse", "compiled"
GAIN = 1.25  # how much faster it must promise to be
START = 20.0  # seconds that it must promise to save: loading its kernels takes a few, compiling them, once per machine, half a minute
SPEED = 4e10  # multiplications of torch per second, roughly


@cache
def lacking() -> str | None:
    """What this machine lacks to run the engine, if anything."""
    if find_spec("numba") is None:
        return "numba is not installed"
    from llvmlite.binding import get_host_cpu_features

    if platform.machine() in ("x86_64", "AMD64") and not get_host_cpu_features().get("fma"):
        return "the processor has no fused multiply-add"
    return None


def unfit(net: nn.Module) -> str | None:
    """Why the engine cannot compute a network, if so."""
    if not isinstance(net, Net):
        return "it computes networks of methods/networks/resnet.py only"
    weight = net.stem.weight
    if weight.device.type != "cpu" or weight.dtype != torch.float32:
        return f"it computes on CPUs in float32 only, not on {weight.device.type} in {weight.dtype}"
    if any(type(norm) is not nn.BatchNorm2d for norm in net.norms()):
        return "it has no batch norms that several processes share"
    return None


def insisted() -> str | None:
    """The engine that computes any network in training, where SUITE_ENGINE names one."""
    return COMPILED if settings.engine() == COMPILED else None


def choose(net: nn.Module, images: float, *, side: int) -> str:
    """DENSE or SPARSE, for a network with the zeros that it has now and so many images to go forward (a gradient counts as another).

    `side` is that of the images, in pixels.
    """
    wanted = settings.engine()
    if wanted in (DENSE, COMPILED):
        return DENSE
    reason = lacking() or unfit(net)
    if wanted == SPARSE:
        if lacking() is not None:
            raise UserError(f"{settings.ENGINE}=sparse: {lacking()}; install it, or set {settings.ENGINE}=auto")
        return DENSE if reason else SPARSE
    if unfit(net) is not None or not promising(net, images, side):
        return DENSE
    if reason is not None:
        _say_once(f"note: {reason}: networks of many zeros are computed densely")
        return DENSE
    return SPARSE if gain(net, side) >= GAIN else DENSE


@cache
def _say_once(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def promising(net: Net, images: float, side: int) -> bool:
    """Whether enough multiplications are by zero, and enough in all, for a closer look."""
    layers = work(net, side)
    spared = sum(every * (1 - density) for every, density in layers)
    return spared >= 0.5 * sum(every for every, _ in layers) and spared * images >= START * SPEED


def taken_up(saved: str, chosen: str) -> str:
    """The engine of a run that goes on: that which it began with, bit for bit, unless SUITE_ENGINE insists or the machine lacks it."""
    if settings.engine() != "auto" or (saved == SPARSE and lacking() is not None):
        return chosen
    return saved


def gain(net: Net, side: int) -> float:
    """How many times faster than torch a pass should be, by the machine's calibration."""
    from methods.sparse.calibration import calibration

    machine, layers = calibration(), work(net, side)
    ours = sum(every * min(density / machine.break_even, 1) for every, density in layers)
    return machine.dense * sum(every for every, _ in layers) / max(ours, 1e-9)


def work(net: Net, side: int) -> list[tuple[float, float]]:
    """Multiplications of each layer for one image of this side, and the share of them that is not by zero."""
    layers = []

    def add(conv: nn.Conv2d, entry: int) -> int:
        size = entry // conv.stride[0]
        weight = conv.weight.detach()
        layers.append((float(weight.numel() * size**2), weight.count_nonzero().item() / weight.numel()))
        return size

    side = add(net.stem, side) // (1 if net.pool is None else 2)
    for block in net.blocks:
        entry = side
        for conv in block.convs:
            side = add(conv, side)
        if block.projection is not None:
            add(block.projection, entry)
    return layers


_engines: WeakKeyDictionary[Net, Engine] = WeakKeyDictionary()
_compiled: WeakKeyDictionary[Net, Callable[[Tensor], Tensor]] = WeakKeyDictionary()


def engine_of(net: Net) -> Engine:
    """The sparse engine of a network."""
    from methods.sparse.engine import Engine

    if net not in _engines:
        _engines[net] = Engine(net)
    return _engines[net]


def compiled_of(net: Net) -> Callable[[Tensor], Tensor]:
    """A network compiled by torch, which fuses what follows a convolution. It rounds otherwise than the operations one by one do."""
    if net not in _compiled:
        network = ref(net)
        _compiled[net] = torch.compile(lambda x: network().compute(x))
    return _compiled[net]


@contextmanager
def computed_by(engine: str, net: nn.Module) -> Iterator[None]:
    """Inside, the network computes by this engine where that can: `net(x)` is as before, to rounding."""
    chosen = compiled_of(net) if engine == COMPILED and isinstance(net, Net) else None
    if engine == SPARSE and unfit(net) is None and not net.lowered:
        chosen = engine_of(net)
    if chosen is None:
        yield
        return
    before, net.engine = net.engine, chosen
    try:
        yield
    finally:
        net.engine = before


class QuickForm(nn.Module):
    """A network by the sparse engine, as a module."""

    def __init__(self, net: Net):
        super().__init__()
        self.own = (net, engine_of(net))  # in a tuple, the network is not a part of this module, but it stays

    def forward(self, x: Tensor) -> Tensor:
        return self.own[1](x)


def quick_form(net: nn.Module, images: float, *, side: int) -> nn.Module | None:
    """What attacks of so many images search on in place of a network; none where torch is to compute it."""
    return QuickForm(net) if choose(net, images, side=side) == SPARSE else None
