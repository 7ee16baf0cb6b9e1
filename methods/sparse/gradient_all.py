"""Gradients of all weights of a convolution, kept or not: what training of scores needs.

Products of every output channel's gradient with every input that a weight meets: a matrix product, summed over positions and images. Tiles
of it stay in registers over a chunk (chunk.py), then lanes are summed.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from methods.sparse.chunk import chunks_of, clear_chunk, load_chunk, share_out
from methods.sparse.geometry import Geometry
from methods.sparse.jit import kernel
from methods.sparse.lanes import LANES, WIDE, zeros
from methods.sparse.layout import Pool
from methods.sparse.scalars import add_products, add_to_float, float_at, int_at, store_lane_sums
from methods.sparse.tape import Applied, Map

ROWS, COLUMNS = (4, 6) if WIDE else (2, 3)  # output channels, and weights of each, of a tile


class Columns:
    """Where each weight of an output channel meets a chunk's inputs, and where its gradient goes; whole tiles, the last one repeated."""

    def __init__(self, g: Geometry, kernel_size: int, strides: tuple[int, ...]):
        channel, row, column = (index.ravel() for index in np.indices((g.channels, kernel_size, kernel_size)))
        self.count, self.stride = len(channel), strides[0]
        padding = (0, -self.count % COLUMNS)
        self.offsets = np.pad((row * g.channels + channel) * g.pitch + column * LANES, padding, mode="edge").astype(np.int32)
        self.places = (channel * strides[1] + row * strides[2] + column * strides[3]).astype(np.int32)


@kernel
def gradients(tile, rows, columns, first, last, g, chunks, inputs, outputs, offsets, count, places, stride, result, sums):
    """Add the gradients of `count` weights of each output channel of the tiles `first` to `last` to `result`.

    Weight k of a channel meets the inputs at offsets[k]; its gradient is at places[k] from the channel's first, which are `stride` apart.
    """
    clear_chunk(g, chunks, inputs)
    for block in range(0, chunks.all_blocks, chunks.blocks):
        for row in range(0, g.out_height, chunks.rows):
            blocks, here = load_chunk(g, chunks, block, row, inputs, outputs)
            for channel in range(first * len(rows), min(g.out_channels, last * len(rows)), len(rows)):
                for k in range(0, count, len(columns)):
                    total = products(tile, rows, columns, g, chunks, blocks, here, inputs, outputs, offsets, channel, k)
                    store_lane_sums(sums, 0, total)
                    for r in range(min(len(rows), g.out_channels - channel)):
                        for c in range(min(len(columns), count - k)):
                            place = (channel + r) * stride + int_at(places, k + c)
                            add_to_float(result, place, float_at(sums, r * len(columns) + c))


@kernel
def products(tile, rows, columns, g, chunks, blocks, here, inputs, outputs, offsets, channel, k):
    """Sums over a chunk's positions, per lane, for the output channels from `channel` on and their weights from k on."""
    total, width = zeros(tile), g.out_width * LANES
    for b in range(blocks):
        for r in range(here):
            at = (b * chunks.inputs + r * g.advance) * g.channels * g.pitch
            out = ((b * chunks.rows + r) * g.out_channels + channel) * width
            for x in range(g.out_width):
                total = add_products(total, rows, columns, outputs, out + x * LANES, width, inputs, at + x * g.stride * LANES, offsets, k)
    return total


def gradient_of_all(applied: Applied, gradient: Map, pool: Pool) -> Tensor:
    """The gradient of a layer's weight, in the weight's own memory order, from that of its raw outputs."""
    weight = applied.layer.conv.weight
    g = applied.shape.forward(gradient.extent.blocks)
    chunks, columns, result = chunks_of(g, applied, gradient), Columns(g, applied.shape.kernel, weight.stride()), torch.zeros_like(weight)

    def call(first: int, last: int, inputs: int, outputs: int, sums: int) -> None:
        gradients(
            *((0,) * (ROWS * COLUMNS), (0,) * ROWS, (0,) * COLUMNS, first, last, g, chunks, inputs, outputs),
            *(columns.offsets.ctypes.data, columns.count, columns.places.ctypes.data, columns.stride, result.data_ptr(), sums),
        )

    share_out(pool, g, chunks, -(-g.out_channels // ROWS), ROWS, call)
    return result
