"""What is done to the planes of an image, compiled: a whole network is one call, an operation a row of numbers (program.py).

All kernels stand in this module: numba's cache notices a change of the file, not of what a kernel calls (methods/sparse/jit.py sees to its
own room).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import literal_unroll, types
from numba.extending import intrinsic

from methods.sparse.bits import BITS
from methods.sparse.jit import kernel
from methods.sparse.lanes import INDEX, LANES, WIDE, ZERO, add, add_scaled, each, element, fma, load, positive, spread, store, zeros
from methods.sparse.scalars import float_at, int_at

CONVOLVE, SPLIT, MAXIMA, MEANS = range(4)
BYTES = 4  # of a float
# Tiles: how many vectors are added up in registers at once, at most as many as AVX2 has registers for. Maps of 32, 16, 8 and 4 rows have
# 66, 17, 5 and 2 vectors.
TILES = tuple((0,) * size for size in (11, 6, 5, 2, 1) if WIDE or size < 7)


class Operation(NamedTuple):
    """Numbers of one operation. Places of planes count floats of the workspace; lists and masks are addresses."""

    kind: int
    source: int
    source_floats: int  # from channel to channel; so for the target
    source_pitch: int
    target: int
    target_floats: int
    target_pitch: int
    channels: int  # of the target; of the source where they are as many, or split
    height: int  # of the source
    width: int
    vectors: int = 0
    start: int = 0
    offset: int = 0
    factor: int = 0
    scale: int = 0
    shift: int = 0
    shortcut: int = -1  # planes like the target's that are added, if any
    relu: int = 0
    mask: int = 0


@intrinsic
def masked(typing, tile, address, at):
    """A tile with zeros where the bits of a mask, from entry `at` on, are 0."""

    def make(context, builder, signature, arguments):
        vectors, address, at = arguments

        def one(k: int) -> ir.Value:
            place = element(builder, ir.IntType(16), address, builder.add(at, ir.Constant(INDEX, k)))
            chosen = builder.bitcast(builder.load(place, typ=ir.IntType(16)), BITS)
            return builder.select(chosen, builder.extract_value(vectors, k), ZERO)

        return each(builder, tile.size, one)

    return tile(tile, types.intp, types.intp), make


@kernel
def strip(tile, first, op, source, target, shortcut):
    """The vectors of all output channels from number `first` on, as many as the tile has."""
    at = first * LANES
    for c in range(op.channels):
        total = zeros(tile)
        for k in range(int_at(op.start, c), int_at(op.start, c + 1)):
            total = add_scaled(total, source, at + int_at(op.offset, k), LANES, float_at(op.factor, k))
        value = fma(total, spread(tile, float_at(op.scale, c)), spread(tile, float_at(op.shift, c)))
        place = c * op.target_floats + at
        if shortcut != 0:
            value = add(value, load(tile, shortcut, place, LANES))
        if op.relu != 0:
            value = positive(value)
        store(target, place, LANES, masked(value, op.mask, first))


@kernel
def convolve(op, workspace):
    source, target = workspace + op.source * BYTES, workspace + op.target * BYTES
    shortcut = 0 if op.shortcut < 0 else workspace + op.shortcut * BYTES
    first = 0
    for tile in literal_unroll(TILES):
        while first + len(tile) <= op.vectors:
            strip(tile, first, op, source, target, shortcut)
            first += len(tile)


@kernel
def split(op, values):
    """Each plane into four: of even and odd rows, and of their even and odd columns."""
    for c in range(op.channels):
        for parity in range(4):
            y, x = parity // 2, parity % 2
            target = op.target + (4 * c + parity) * op.target_floats
            for row in range((op.height - y + 1) // 2):
                source = op.source + c * op.source_floats + (2 * row + y) * op.source_pitch + x
                for column in range((op.width - x + 1) // 2):
                    values[target + row * op.target_pitch + column] = values[source + 2 * column]


@kernel
def maxima(op, values):
    """Of 3x3 positions, every other one. The map is a ReLU's: its border of zeros changes no maximum."""
    for c in range(op.channels):
        for row in range((op.height + 1) // 2):
            source = op.source + c * op.source_floats + 2 * row * op.source_pitch
            target = op.target + c * op.target_floats + row * op.target_pitch
            for column in range((op.width + 1) // 2):
                most = np.float32(0)
                for down in range(-1, 2):
                    for along in range(-1, 2):
                        value = values[source + down * op.source_pitch + 2 * column + along]
                        most = value if not value <= most else most  # NaN stays NaN
                values[target + column] = most


@kernel
def means(op, values):
    """Of all positions of each plane."""
    for c in range(op.channels):
        total = np.float32(0)
        for row in range(op.height):
            source = op.source + c * op.source_floats + row * op.source_pitch
            for column in range(op.width):
                total += values[source + column]
        values[op.target + c * op.target_floats] = total / np.float32(op.height * op.width)


@kernel
def run(operations, values, workspace):
    """All operations in their order, on the planes in `values`, an array whose address is `workspace`."""
    for op in operations:
        if op.kind == CONVOLVE:
            convolve(op, workspace)
        elif op.kind == SPLIT:
            split(op, values)
        elif op.kind == MAXIMA:
            maxima(op, values)
        else:
            means(op, values)
