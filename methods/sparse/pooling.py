"""Pooling: the mean over a map before the classifier; for large images the maximum of 3x3 positions, every other one, after the stem."""

from __future__ import annotations

import numpy as np

from methods.sparse import bits, lanes
from methods.sparse.jit import kernel
from methods.sparse.lanes import LANES, ONE
from methods.sparse.sink import finish
from methods.sparse.source import clear_borders, clear_row, load_row


@kernel
def mean_forward(first, last, source, height, channels, width, row, means):
    """Means over positions, [blocks, channels, 16], of blocks `first` to `last`; `row` holds one row."""
    share = lanes.spread(ONE, np.float32(1 / (height * width)))
    for block in range(first, last):
        start = block * channels * LANES
        for y in range(height):
            load_row(source, block * height + y, channels, width, row, 0, width * LANES, True)
            for c in range(channels):
                at = start + c * LANES
                total = lanes.zeros(ONE) if y == 0 else lanes.load(ONE, means, at, LANES)
                for x in range(width):
                    total = lanes.add(total, lanes.load(ONE, row, (c * width + x) * LANES, LANES))
                if y == height - 1:
                    total = lanes.fma(total, share, lanes.zeros(ONE))
                lanes.store(means, at, LANES, total)


@kernel
def mean_backward(first, last, gradients, height, channels, width, slot, slots, row, sink):
    """The gradient at every position of blocks `first` to `last` from that of the means; `row` holds one row of a channel."""
    share = lanes.spread(ONE, np.float32(1 / (height * width)))
    for block in range(first, last):
        for c in range(channels):
            value = lanes.fma(lanes.load(ONE, gradients, (block * channels + c) * LANES, LANES), share, lanes.zeros(ONE))
            for x in range(width):
                lanes.store(row, x * LANES, LANES, value)
            for y in range(height):
                place = ((block * height + y) * channels + c) * width
                finish(sink, row, 0, width, place, 1, ((block * slots + y // slot) * channels + c) * 3 * LANES)


@kernel
def max_forward(first, last, source, height, channels, width, rows, result, winners):
    """Maxima of blocks `first` to `last`; `rows` holds three rows with a border.

    The map is a ReLU's: a border of zeros changes no maximum. `winners` has nine times sixteen bits per result, one set for each place of
    the window: in which images the (first) maximum was there.
    """
    out_height, out_width, pitch = (height + 1) // 2, (width + 1) // 2, (width + 2 + width % 2) * LANES
    clear_borders(rows, 3 * channels, 1, width, pitch)
    for block in range(first, last):
        for y in range(out_height):
            for r in range(3):
                row, at = 2 * y - 1 + r, r * channels * pitch + LANES
                if 0 <= row < height:
                    load_row(source, block * height + row, channels, width, rows, at, pitch, r > 0)
                else:
                    clear_row(rows, at, channels, width, pitch)
            for c in range(channels):
                for x in range(out_width):
                    at, out = c * pitch + 2 * x * LANES, ((block * out_height + y) * channels + c) * out_width + x
                    most = lanes.load(ONE, rows, at, LANES)
                    for k in range(1, 9):
                        most = lanes.larger(most, lanes.load(ONE, rows, at + k // 3 * channels * pitch + k % 3 * LANES, LANES))
                    lanes.store(result, out * LANES, LANES, most)
                    free = np.uint16(0xFFFF)
                    for k in range(9):
                        value = lanes.load(ONE, rows, at + k // 3 * channels * pitch + k % 3 * LANES, LANES)
                        here = np.uint16(bits.reached(value, most) & free)
                        free = np.uint16(free & ~here)
                        if winners != 0:
                            bits.put_bits(winners, out * 9 + k, here)


@kernel
def max_backward(first, last, gradients, winners, height, channels, width, slot, slots, row, sink):
    """The gradient at every position of blocks `first` to `last`: of the maxima that it won; `row` holds one row of a channel."""
    out_height, out_width = (height + 1) // 2, (width + 1) // 2
    for block in range(first, last):
        for y in range(height):
            for c in range(channels):
                for x in range(width):
                    total = lanes.zeros(ONE)
                    for k in range(9):
                        down, along = y + 1 - k // 3, x + 1 - k % 3
                        if down % 2 == 0 and along % 2 == 0 and 0 <= down < 2 * out_height and 0 <= along < 2 * out_width:
                            out = ((block * out_height + down // 2) * channels + c) * out_width + along // 2
                            won = bits.keep(lanes.load(ONE, gradients, out * LANES, LANES), bits.bits_at(winners, out * 9 + k))
                            total = lanes.add(total, won)
                    lanes.store(row, x * LANES, LANES, total)
                place = ((block * height + y) * channels + c) * width
                finish(sink, row, 0, width, place, 1, ((block * slots + y // slot) * channels + c) * 3 * LANES)
