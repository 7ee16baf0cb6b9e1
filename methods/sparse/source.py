"""Rows of a feature map as they enter a kernel: batch norm, residual and ReLU are applied on the way from memory to the rows at hand."""

from __future__ import annotations

from typing import NamedTuple

from methods.sparse.bits import put_bits, signs
from methods.sparse.jit import kernel
from methods.sparse.lanes import LANES, ONE, fma, load, positive, spread, store, store_past, zeros
from methods.sparse.scalars import float_at


class Source(NamedTuple):
    """scale * values + shift (+ other_scale * other), then ReLU: every map that a kernel reads.

    Forward `values` are a convolution's raw outputs, scale and shift its batch norm, `other` what comes over the shortcut. Backward
    `values` are gradients and `other` the raw outputs: batch norm's gradient has the same form (norm.py). An empty array stands for none.
    """

    values: int  # [blocks, height, channels, width, 16], flat; so are `other` and `copy`
    scale: int  # per channel
    shift: int
    other: int
    other_scale: int
    relu: bool
    bits: int  # out: which lanes ReLU left above 0, one uint16 per vector
    copy: int  # out: the map itself
    past: bool  # whether `copy` goes to memory past the caches


@kernel
def load_row(source, row, channels, width, target, at, pitch, own):
    """Row number `row` (of all blocks) to target[at:], channels `pitch` floats apart; `own` rows also go to `bits` and `copy`."""
    step = LANES
    both, relu = source.other != 0, source.relu
    bits, copy = own and source.bits != 0, own and source.copy != 0
    for c in range(channels):
        scale, shift = spread(ONE, float_at(source.scale, c)), spread(ONE, float_at(source.shift, c))
        other_scale = spread(ONE, float_at(source.other_scale, c)) if both else scale
        place = (row * channels + c) * width
        for x in range(width):
            value = fma(load(ONE, source.values, (place + x) * step, step), scale, shift)
            if both:
                value = fma(load(ONE, source.other, (place + x) * step, step), other_scale, value)
            if relu:
                value = positive(value)
            store(target, at + c * pitch + x * step, step, value)
            if bits:
                put_bits(source.bits, place + x, signs(value))
            if copy and source.past:
                store_past(source.copy, (place + x) * step, value)
            elif copy:
                store(source.copy, (place + x) * step, step, value)


@kernel
def clear(target, at, count):
    """So many zero vectors."""
    for x in range(count):
        store(target, at + x * LANES, LANES, zeros(ONE))


@kernel
def clear_row(target, at, channels, width, pitch):
    """Zeros in place of a row beyond the map's edge."""
    for c in range(channels):
        clear(target, at + c * pitch, width)


@kernel
def clear_borders(target, channels, left, width, pitch):
    """Zeros to the left and right of rows that start with `left` columns of border; `channels` counts the channels of all rows."""
    for c in range(channels):
        clear(target, c * pitch, left)
        clear(target, c * pitch + (left + width) * LANES, pitch // LANES - left - width)
