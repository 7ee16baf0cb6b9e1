"""Which rows and columns of a map a kernel reads for which results: convolutions and their gradients as one scheme.

A kernel goes in steps. Step j has a `window` of input rows at hand, from row j * advance + low on, padded with zero columns. Forward,
step j gives output row j, and results stand `stride` input columns apart. Backward, every input pixel of a convolution gathers from the
output pixels that it entered: step j gives `spacing` rows (the stride of the convolution), and in each `spacing` sets of columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from methods.sparse.lanes import LANES, WIDE
from methods.sparse.layout import Buffer, Pool

SLOT = 128  # positions whose sums are taken in single precision before double precision goes on
GROUP = 4 if WIDE else 2  # channels, and positions, of a tile where all weights are there
BAND = 16  # output rows that are worth loading the rows around them once more


class Geometry(NamedTuple):
    """Sizes of one kernel call; rows and columns are counted in positions, `pitch` in floats."""

    height: int
    channels: int
    width: int
    out_height: int
    out_channels: int
    out_width: int
    advance: int
    spacing: int
    stride: int
    low: int
    window: int
    left: int
    pitch: int
    steps: int
    band: int  # steps that belong to one piece of work
    slot: int  # output rows that share sums
    slots: int  # per block

    @property
    def tile(self) -> int:
        """Results of a row that are summed at once: their vectors fit into registers, of which AVX2 has half as many of half the size."""
        return 4 if -(-self.out_width // self.spacing) <= 4 or not WIDE else 8

    def sums(self, pool: Pool, blocks: int) -> Buffer:
        """Room for the sums of a Sink, set to zero."""
        buffer = pool.take(blocks * self.slots * self.out_channels * 3 * LANES)
        buffer.array.fill(0)
        return buffer

    @property
    def bands(self) -> int:
        return -(-self.steps // self.band)


class Places(NamedTuple):
    """For each kernel row and column: where it meets the window, and results of which parity."""

    row: np.ndarray
    column: np.ndarray
    parity: np.ndarray


@dataclass(frozen=True)
class Shape:
    """A convolution on maps of one size, padded so that stride 1 keeps it."""

    channels_in: int
    channels_out: int
    kernel: int
    stride: int
    height: int
    width: int

    @property
    def pad(self) -> int:
        return (self.kernel - 1) // 2

    @property
    def out_height(self) -> int:
        return (self.height + 2 * self.pad - self.kernel) // self.stride + 1

    @property
    def out_width(self) -> int:
        return (self.width + 2 * self.pad - self.kernel) // self.stride + 1

    def reach(self) -> tuple[int, int]:
        """Backward: the first and last output row, relative to step j, that input rows of step j entered."""
        rows = [(y + self.pad - k) // self.stride for y in range(self.stride) for k in range(self.kernel) if self.meets(y, k)]
        return min(rows), max(rows)

    def meets(self, parity: int, k: int) -> bool:
        """Whether input rows of this parity meet kernel row k."""
        return (parity + self.pad - k) % self.stride == 0

    @cache  # noqa: B019 (of the few shapes that there are)
    def forward(self, blocks: int) -> Geometry:
        columns = max(self.width + 2 * self.pad, (self.out_width - 1) * self.stride + self.kernel)
        bands, slot, slots = _pieces(blocks, self.out_height, self.out_width, 1)
        return Geometry(
            *(self.height, self.channels_in, self.width, self.out_height, self.channels_out, self.out_width),
            *(self.stride, 1, self.stride, -self.pad, self.kernel, self.pad, columns * LANES, self.out_height, bands, slot, slots),
        )

    @cache  # noqa: B019
    def backward(self, blocks: int) -> Geometry:
        low, high = self.reach()
        left, steps = max(0, -low), -(-self.height // self.stride)
        columns = max(left + self.out_width, left + -(-self.width // self.stride) + high)
        bands, slot, slots = _pieces(blocks, self.height, self.width, self.stride)
        return Geometry(
            *(self.out_height, self.channels_out, self.out_width, self.height, self.channels_in, self.width),
            *(1, self.stride, 1, low, high - low + 1, left, columns * LANES, steps, bands, slot, slots),
        )

    def places(self, g: Geometry, *, backward: bool) -> Places:
        """Where kernel rows and columns meet the window. Backward, a stride of 2 leaves pixels of each parity a part of the kernel."""
        row, column = np.indices((self.kernel, self.kernel))
        if not backward:
            return Places(row, column, np.zeros_like(row))
        down, along = self.pad - row, self.pad - column
        y, x = -down % self.stride, -along % self.stride
        return Places((y + down) // self.stride - g.low, (x + along) // self.stride + g.left, y * self.stride + x)


def _pieces(blocks: int, height: int, width: int, spacing: int) -> tuple[int, int, int]:
    """Steps per piece of work, output rows per slot of sums, slots per block; the same for any number of threads, as bits must be."""
    slot = max(1, min(height, SLOT // width))
    slot = -(-slot // spacing) * spacing
    rows = BAND if blocks > 2 else BAND // 4  # a small batch is shared out by rows as well
    band = -(-max(slot, rows) // slot) * slot
    return max(1, band // spacing), slot, -(-height // slot)
