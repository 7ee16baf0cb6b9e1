"""A network as the bytes of a compact file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from torch import Tensor

from methods.core.errors import UserError
from methods.core.signs import LAW, signs
from methods.networks.arguments import Residual
from methods.networks.compact import mask, planes, values
from methods.networks.compact.coder import Encoder
from methods.networks.compact.container import Header, Layer, assemble
from methods.networks.model_file import sound
from methods.networks.resnet import Net

DENSE = 0.95  # a network that keeps more of its weights is not pruned: a mask would not save anything


class Unfit(UserError):
    """The network is one that compact files are not made for."""


@dataclass
class _Parts:
    """What is gathered layer by layer."""

    coder: Encoder = field(default_factory=Encoder)
    layers: list[Layer] = field(default_factory=list)
    real: list[np.ndarray] = field(default_factory=list)
    numbers: list[np.ndarray] = field(default_factory=list)


def encode(net: Net, spec: dict[str, Any], tensors: dict[str, Tensor] | None = None, *, half: bool = False) -> bytes:
    """The file of a network (or of `tensors` of its shape) of the Run `spec`; `half` rounds real-valued kept weights to float16.

    `Unfit` where there is nothing to gain or no way to store it.
    """
    own = net.state_dict()
    tensors = {name: (own if tensors is None else tensors)[name].detach().cpu() for name in own}
    check(net, tensors)
    names = [name for name, _ in net.convs()]
    seed, parts = spec.get("seed"), _Parts()
    for name in names:
        _add(parts, name, tensors[f"{name}.weight"], seed)
    if half and not parts.real:
        raise Unfit("no weight of this network is stored as a real number, so float16 would change nothing; leave --half out")
    real = np.concatenate(parts.real or [np.zeros(0, np.float32)])
    others = [t for name, t in tensors.items() if name.removesuffix(".weight") not in names]
    numbers = [*parts.numbers, *(t.numpy().ravel() for t in others if t.is_floating_point())]
    by_law = any(layer.values == "law" for layer in parts.layers)
    sections = [parts.coder.finish(), planes.packed(_halved(real) if half else real), planes.packed(np.concatenate(numbers))]
    header = Header(
        network=Residual(**net.arguments),  # type: ignore[arg-type]
        spec=spec,
        layers=parts.layers,
        batches=[int(t) for t in others if not t.is_floating_point()],
        sections=[len(section) for section in sections],
        law=LAW if by_law else None,
        seed=seed if by_law else None,
        half=half,
    )
    return assemble(header, sections)


def check(net: Net, tensors: dict[str, Tensor]) -> None:
    """Raise `Unfit` for what a compact file cannot hold, and for a network that is not pruned."""
    if not isinstance(net, Net):
        raise Unfit(f"a {type(net).__name__} network is not one of the suite's residual networks, and compact files hold only those")
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and (str(tensor.dtype) != "torch.float32" or not bool(sound(name, tensor).all())):
            raise Unfit(f"tensor '{name}' is of {tensor.dtype}, or not finite; compact files hold finite float32 numbers")
    weights = [tensors[f"{name}.weight"] for name, _ in net.convs()]
    size, kept = sum(w.numel() for w in weights), sum(int(w.count_nonzero()) for w in weights)
    if kept > DENSE * size:
        raise Unfit(
            f"the network is dense: it keeps {kept} of {size} weights, so there is no mask that would save space; keep its model file"
        )


def _add(parts: _Parts, name: str, tensor: Tensor, seed: int | None) -> None:
    weight = tensor.contiguous().numpy()
    kept = weight != 0
    by_kernel = kept.reshape(*kept.shape[:2], -1)
    model = mask.model_for(by_kernel)
    mask.code(parts.coder, by_kernel.shape, int(kept.sum()), model, by_kernel)
    drawn = None if seed is None else signs(seed, name, weight.size).reshape(weight.shape)[kept]
    given = values.describe(weight[kept], drawn)
    levels = 0
    if given.kind == "codebook":
        levels = len(given.numbers)
        values.code(parts.coder, int(kept.sum()), levels, np.searchsorted(given.numbers, weight[kept]))
    (parts.real if given.kind == "real" else parts.numbers).append(given.numbers)
    parts.layers.append(Layer(int(kept.sum()), given.kind, levels, *model))  # type: ignore[arg-type]


def _halved(real: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        half = real.astype(np.float16)
    if not np.isfinite(half).all():
        raise Unfit(f"a weight of {np.abs(real).max():.3g} does not fit into float16; leave --half out")
    return half
