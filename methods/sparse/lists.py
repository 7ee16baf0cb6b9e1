"""Kept weights as lists: for each result which vectors of the rows at hand to add up, and with which factor."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from methods.sparse.geometry import Geometry, Shape
from methods.sparse.jit import kernel
from methods.sparse.lanes import LANES

NEAR = 480  # vectors that stay in the nearest cache beside the results
WORTH = 10  # kept weights per list and segment that make up for reading and writing the results once more


class Lists(NamedTuple):
    """Addresses of lists: number (parity * segments + segment) * channels + channel has the entries start[n] to start[n + 1]."""

    start: int
    offset: int  # floats from the window's first float
    weight: int
    segments: int


class Kept:
    """The weights of a convolution that are not zero, in the order of output channel, input channel, kernel row, kernel column."""

    def __init__(self, weight: np.ndarray):
        self.channel_out, self.channel_in, self.row, self.column, self.value = find_kept(weight, count_kept(weight))
        self.density = len(self.value) / weight.size
        self.made: dict[tuple[Shape, bool], tuple[Lists, list[np.ndarray]]] = {}

    def lists(self, shape: Shape, geometry: Geometry, *, backward: bool) -> Lists:
        """Made at their first use; backward passes see the weights of their forward pass, whatever became of the network since."""
        if (shape, backward) not in self.made:
            self.made[shape, backward] = self._backward(shape, geometry) if backward else self._forward(geometry)
        return self.made[shape, backward][0]

    def _forward(self, geometry: Geometry) -> tuple[Lists, list[np.ndarray]]:
        """Each output channel's kept weights."""
        return self._arranged(geometry, self.channel_out, self.channel_in, self.row, self.column, 0)

    def _backward(self, shape: Shape, geometry: Geometry) -> tuple[Lists, list[np.ndarray]]:
        """Each input channel's kept weights, apart for pixels of different parity: a stride of 2 leaves each a part of the kernel."""
        down, along = shape.pad - self.row, shape.pad - self.column
        y, x = -down % shape.stride, -along % shape.stride  # the parity that a kernel row or column meets
        rows, columns = (y + down) // shape.stride - geometry.low, (x + along) // shape.stride + geometry.left
        return self._arranged(geometry, self.channel_in, self.channel_out, rows, columns, y * shape.stride + x)

    def _arranged(self, g: Geometry, to, of, rows, columns, parity) -> tuple[Lists, list[np.ndarray]]:
        near = max(1, NEAR // (g.window * (g.tile * g.stride + g.window - 1)))
        per_list = len(to) / (g.out_channels * g.spacing**2)
        segments = -(-g.channels // near) if per_list * near / g.channels >= WORTH else 1
        segment = of // -(-g.channels // segments)
        number = (parity * segments + segment) * g.out_channels + to
        offset = (rows * g.channels + of) * g.pitch + columns * LANES
        arrays = arrange(number, offset, self.value, g.spacing**2 * segments * g.out_channels)
        return Lists(*(array.ctypes.data for array in arrays), segments), list(arrays)


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
