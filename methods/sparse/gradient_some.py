"""Gradients of some weights of a convolution alone: enough where a mask stays as it is. A weight under the mask may be 0 at the moment."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from methods.sparse.chunk import chunks_of, clear_chunk, load_chunk, share_out
from methods.sparse.jit import kernel
from methods.sparse.lanes import LANES, ONE, fma, load, zeros
from methods.sparse.layout import Pool
from methods.sparse.lists import Kept
from methods.sparse.scalars import add_to_float, float_at, int_at, store_lane_sums
from methods.sparse.tape import Applied, Map

FOUR = (0, 0, 0, 0)  # sums that do not wait for each other


@kernel
def gradients(first, last, g, chunks, inputs, outputs, start, offsets, places, result, sums):
    """Add the gradients of the chosen weights of output channels `first` to `last` to `result`: entries start[c] to start[c + 1]."""
    clear_chunk(g, chunks, inputs)
    for block in range(0, chunks.all_blocks, chunks.blocks):
        for row in range(0, g.out_height, chunks.rows):
            blocks, here = load_chunk(g, chunks, block, row, inputs, outputs)
            for channel in range(first, last):
                for k in range(int_at(start, channel), int_at(start, channel + 1)):
                    add_products_of(g, chunks, blocks, here, inputs, outputs, int_at(offsets, k), channel, sums)
                    for i in range(len(FOUR) + 1):
                        add_to_float(result, int_at(places, k), float_at(sums, i))


@kernel
def add_products_of(g, chunks, blocks, here, inputs, outputs, offset, channel, sums):
    """Write five sums that together are those of a chunk's positions and lanes, for the weight that meets the inputs at `offset`."""
    total, rest, step, whole = zeros(FOUR), zeros(ONE), g.stride * LANES, g.out_width & ~3
    for b in range(blocks):
        for r in range(here):
            at = (b * chunks.inputs + r * g.advance) * g.channels * g.pitch + offset
            out = ((b * chunks.rows + r) * g.out_channels + channel) * g.out_width * LANES
            for x in range(0, whole, 4):
                total = fma(load(FOUR, outputs, out + x * LANES, LANES), load(FOUR, inputs, at + x * step, step), total)
            for x in range(whole, g.out_width):
                rest = fma(load(ONE, outputs, out + x * LANES, LANES), load(ONE, inputs, at + x * step, step), rest)
    store_lane_sums(sums, 0, total)
    store_lane_sums(sums, len(FOUR), rest)


def gradient_of_some(applied: Applied, gradient: Map, some: Kept, pool: Pool) -> Tensor:
    """The gradient of a layer's weight at the places of `some`; zero elsewhere."""
    weight, g = applied.layer.conv.weight, applied.shape.forward(gradient.extent.blocks)
    chunks, result = chunks_of(g, applied, gradient), torch.zeros_like(weight)
    offsets = ((some.row * g.channels + some.channel_in) * g.pitch + some.column * LANES).astype(np.int32)
    indices = (some.channel_out, some.channel_in, some.row, some.column)
    places = sum(index * stride for index, stride in zip(indices, weight.stride(), strict=True)).astype(np.int32)
    start = np.searchsorted(some.channel_out, np.arange(g.out_channels + 1)).astype(np.int32)

    def call(first: int, last: int, inputs: int, outputs: int, sums: int) -> None:
        lists = (start.ctypes.data, offsets.ctypes.data, places.ctypes.data)
        gradients(first, last, g, chunks, inputs, outputs, *lists, result.data_ptr(), sums)

    share_out(pool, g, chunks, g.out_channels, 0, call)
    return result
