"""Kept weights as lists: for each result which vectors of the rows at hand to add up, and with which factor."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from methods.sparse.geometry import GROUP, Geometry, Places, Shape
from methods.sparse.jit import kernel
from methods.sparse.lanes import LANES

NEAR = 480  # vectors that stay in the nearest cache beside the results
WORTH = 10  # kept weights per list and segment that make up for reading and writing the results once more


class Lists(NamedTuple):
    """Addresses of lists: number (parity * segments + segment) * channels + channel has the entries start[n] to start[n + 1].

    With 0 `segments` every weight is there, zeros too: list number `parity` has the offsets, the same for all channels, and `weight` a
    factor for each of them and for each channel of a group (GROUP), group by group.
    """

    start: int
    offset: int  # floats from the window's first float
    weight: int
    segments: int


Held = tuple[Lists, list[np.ndarray]]  # addresses, and the arrays that must stay


class Kept:
    """The weights of a convolution that are not zero, in the order of output channel, input channel, kernel row, kernel column."""

    def __init__(self, weight: np.ndarray):
        self.channel_out, self.channel_in, self.row, self.column, self.value = find_kept(weight, count_kept(weight))
        self.density = len(self.value) / weight.size
        self.made: dict[tuple[Shape, bool], Held] = {}

    def lists(self, shape: Shape, geometry: Geometry, *, backward: bool, break_even: float = 1.0) -> Lists:
        """Made at their first use; a backward pass sees the weights of its forward pass, whatever became of the network since.

        Above the density `break_even` zeros are computed with: the bits of the results are the same either way.
        """
        if (shape, backward) not in self.made:
            arranged = self._all if self.density > break_even else self._few
            channels = (self.channel_in, self.channel_out) if backward else (self.channel_out, self.channel_in)
            self.made[shape, backward] = arranged(geometry, shape.places(geometry, backward=backward), *channels)
        return self.made[shape, backward][0]

    def _few(self, g: Geometry, places: Places, to: np.ndarray, of: np.ndarray) -> Held:
        """A list for each result channel; in segments of what is read where each segment has enough to do."""
        near = max(1, NEAR // (g.window * (g.tile * g.stride + g.window - 1)))
        per_list = len(to) / (g.out_channels * g.spacing**2)
        segments = -(-g.channels // near) if per_list * near / g.channels >= WORTH else 1
        segment = of // -(-g.channels // segments)
        row, column, parity = (place[self.row, self.column] for place in places)
        number = (parity * segments + segment) * g.out_channels + to
        offset = (row * g.channels + of) * g.pitch + column * LANES
        return _held(*arrange(number, offset, self.value, g.spacing**2 * segments * g.out_channels), segments)

    def _all(self, g: Geometry, places: Places, to: np.ndarray, of: np.ndarray) -> Held:
        """A list for each parity, with factors for every result channel."""
        groups, size = -(-g.out_channels // GROUP), len(self.row)
        offsets, factors = [], []
        for parity in range(g.spacing**2):
            met = places.parity == parity
            rank = np.cumsum(met).reshape(met.shape) - 1
            row, column = places.row[met], places.column[met]
            channel = np.arange(g.channels)[:, None]
            offsets.append(((row * g.channels + channel) * g.pitch + column * LANES).ravel())
            mine = np.flatnonzero(met[self.row, self.column]) if size else np.empty(0, int)
            factor = np.zeros((groups, g.channels * len(row), GROUP), np.float32)
            entry = of[mine] * len(row) + rank[self.row[mine], self.column[mine]]
            factor[to[mine] // GROUP, entry, to[mine] % GROUP] = self.value[mine]
            factors.append(factor.ravel())
        start = np.cumsum([0, *map(len, offsets)]).astype(np.int32)
        return _held(start, np.concatenate(offsets).astype(np.int32), np.concatenate(factors), 0)


def _held(start: np.ndarray, offset: np.ndarray, weight: np.ndarray, segments: int) -> Held:
    arrays = [start, offset, weight]
    return Lists(*(array.ctypes.data for array in arrays), segments), arrays


@kernel
def count_kept(weight):
    count = 0
    for o in range(weight.shape[0]):
        for i in range(weight.shape[1]):
            for row in range(weight.shape[2]):
                for column in range(weight.shape[3]):
                    count += weight[o, i, row, column] != 0
    return count


@kernel
def find_kept(weight, count):
    """Places and values of the `count` weights that are not zero."""
    places, value, k = np.empty((4, count), np.int64), np.empty(count, np.float32), 0
    for o in range(weight.shape[0]):
        for i in range(weight.shape[1]):
            for row in range(weight.shape[2]):
                for column in range(weight.shape[3]):
                    w = weight[o, i, row, column]
                    if w != 0:
                        places[0, k], places[1, k], places[2, k], places[3, k], value[k] = o, i, row, column, w
                        k += 1
    return places[0], places[1], places[2], places[3], value


@kernel
def arrange(number, offset, value, lists):
    """Entries by the number of their list; within a list the order stays."""
    start = np.zeros(lists + 1, np.int32)
    for n in number:
        start[n + 1] += 1
    for n in range(lists):
        start[n + 1] += start[n]
    free, offsets, values = start.copy(), np.empty(len(value), np.int32), np.empty(len(value), np.float32)
    for k in range(len(value)):
        at = free[number[k]]
        offsets[at], values[at] = offset[k], value[k]
        free[number[k]] += 1
    return start, offsets, values
