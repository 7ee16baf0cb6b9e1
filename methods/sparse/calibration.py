"""How fast this machine is at what, measured once on a layer of middle size and kept in a file.

Only speed hangs on it: lists of kept weights and the kernel for all weights give the same bits, and which engine computes a run is written
down with the run.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache

import numpy as np
import torch
import torch.nn.functional as F

from methods.core.files import write
from methods.sparse.geometry import Shape
from methods.sparse.jit import FOLDER
from methods.sparse.lanes import LANES
from methods.sparse.layout import Extent, Pool
from methods.sparse.lists import Kept
from methods.sparse.norm import plain
from methods.sparse.sink import Sink
from methods.sparse.sweep import sweep
from methods.sparse.tape import Map

CHANNELS, SIDE, IMAGES = 64, 16, 2 * LANES
DENSITIES = (0.2, 0.6)  # between which the time grows in a straight line
TURNS = 7


@dataclass(frozen=True)
class Calibration:
    """`break_even`: the density from which zeros are better computed with; `dense`: torch's time for a layer, by ours for all weights."""

    break_even: float
    dense: float


@cache
def calibration() -> Calibration:
    """Of this machine: from its file, or measured."""
    file = None if FOLDER is None else FOLDER / "calibration.json"
    with contextlib.suppress(OSError, ValueError, TypeError):
        if file is not None:
            return Calibration(**json.loads(file.read_text()))
    measured = measure()
    with contextlib.suppress(OSError):
        if file is not None:
            write(file, json.dumps(asdict(measured)) + "\n")
    return measured


def measure() -> Calibration:
    """Time lists, all weights, and torch's convolution with batch norm and ReLU, by turns; the least time of each counts."""
    layer = _Layer()
    calls = [layer.ours(density) for density in DENSITIES] + [layer.ours(1.0), layer.torchs()]
    few, more, every, torchs = _least(calls)
    slope = max((more - few) / (DENSITIES[1] - DENSITIES[0]), 1e-9)
    break_even = DENSITIES[0] + (every - few) / slope
    return Calibration(break_even=round(min(max(break_even, 0.1), 0.95), 3), dense=round(torchs / every, 3))


def _least(calls: list[Callable[[], None]]) -> list[float]:
    times = [[] for _ in calls]
    for call in calls:  # compiled, in the cache
        call()
    for _ in range(TURNS):
        for call, seconds in zip(calls, times, strict=True):
            started = time.perf_counter()
            call()
            seconds.append(time.perf_counter() - started)
    return [min(seconds) for seconds in times]


class _Layer:
    """A 3x3 convolution on CHANNELS channels, forward, with batch statistics."""

    def __init__(self):
        self.draws, self.pool = np.random.default_rng(0), Pool()
        self.shape, self.extent = Shape(CHANNELS, CHANNELS, 3, 1, SIDE, SIDE), Extent(IMAGES, CHANNELS, SIDE, SIDE)
        self.read = Map(self.extent, self.pool.take(self.extent.floats), plain(CHANNELS), relu=True)
        self.read.values.array.fill(1)

    def ours(self, density: float) -> Callable[[], None]:
        """At density 1: all weights."""
        size, geometry = (CHANNELS, CHANNELS, 3, 3), self.shape.forward(self.extent.blocks)
        kept = Kept(np.where(self.draws.random(size) < density, 1, 0).astype(np.float32))
        lists = kept.lists(self.shape, geometry, backward=False, break_even=0.99)
        values, sums = self.pool.take(self.extent.floats), geometry.sums(self.pool, self.extent.blocks)
        sink = Sink(values.address, 0, 0, sums.address, 0, 0, False)

        def call(keep: tuple = (kept, values, sums)) -> None:
            sweep(self.pool, self.read.source(), lists, geometry, sink, self.extent.blocks)

        return call

    def torchs(self) -> Callable[[], None]:
        x = torch.ones(IMAGES, CHANNELS, SIDE, SIDE).contiguous(memory_format=torch.channels_last)
        weight = torch.randn(CHANNELS, CHANNELS, 3, 3, generator=torch.Generator().manual_seed(0))
        weight = weight.contiguous(memory_format=torch.channels_last)

        @torch.no_grad()
        def call() -> None:
            F.relu_(F.batch_norm(F.conv2d(x, weight, padding=1), None, None, training=True))

        return call
