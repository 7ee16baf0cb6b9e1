"""Rows of a layer's input and of its output's gradient that are at hand together: what gradients of weights are summed over, part by part.

Rows are loaded once (source.py), then every weight adds what they have for it. Output channels are shared out among threads, each of which
loads for itself, and each weight sees the chunks in the same order whatever the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from methods.sparse.bits import keep
from methods.sparse.geometry import Geometry
from methods.sparse.jit import kernel
from methods.sparse.lanes import LANES, ONE, load, store
from methods.sparse.layout import Pool
from methods.sparse.source import Source, clear_borders, clear_row, load_row
from methods.sparse.tape import Applied, Map
from methods.sparse.threads import share, threads

POSITIONS = 64  # of a chunk, at least: what a sum over lanes costs is then little


class Chunks(NamedTuple):
    """A chunk is `rows` output rows of each of `blocks` blocks, and the `inputs` input rows that a block's meet."""

    source: Source
    gradient: Source
    blocks: int
    rows: int
    inputs: int
    all_blocks: int
    last_lanes: int  # real images of the last block


def chunks_of(g: Geometry, applied: Applied, gradient: Map) -> Chunks:
    """Chunks of as many rows as give POSITIONS positions, and of several blocks if a map has fewer."""
    images, all_blocks = gradient.extent.images, gradient.extent.blocks
    rows = min(g.out_height, max(1, -(-POSITIONS // g.out_width)))
    blocks = 1 if rows < g.out_height else min(all_blocks, max(1, POSITIONS // (g.out_height * g.out_width)))
    inputs = (rows - 1) * g.advance + g.window
    return Chunks(applied.read.source(), gradient.source(), blocks, rows, inputs, all_blocks, images - (all_blocks - 1) * LANES)


def share_out(pool: Pool, g: Geometry, chunks: Chunks, pieces: int, slack: int, call: Callable[[int, int, int, int, int], None]) -> None:
    """Do `call(first, last, inputs, outputs, sums)` for all pieces, each thread with rows of its own and room for 64 sums.

    Output rows have room for `slack` channels more.
    """
    inputs = [pool.take(chunks.blocks * chunks.inputs * g.channels * g.pitch) for _ in range(threads())]
    outputs = [pool.take((chunks.blocks * chunks.rows * g.out_channels + slack) * g.out_width * LANES) for _ in range(threads())]
    sums = [pool.take(64) for _ in range(threads())]
    share(lambda thread, first, last: call(first, last, *(room[thread].address for room in (inputs, outputs, sums))), pieces)


@kernel
def clear_chunk(g, chunks, inputs):
    """Zero the borders of the input rows; loading leaves them alone."""
    clear_borders(inputs, chunks.blocks * chunks.inputs * g.channels, g.left, g.width, g.pitch)


@kernel
def load_chunk(g, chunks, block, first, inputs, outputs):
    """The chunk from output row `first` of block `block` on; returns how many blocks and rows it has, which are fewer at the end.

    Lanes without an image have a gradient of zero, so that they add nothing to a sum over lanes.
    """
    blocks, rows = min(chunks.blocks, chunks.all_blocks - block), min(chunks.rows, g.out_height - first)
    for b in range(blocks):
        for r in range(chunks.inputs):
            row, at = first * g.advance + g.low + r, (b * chunks.inputs + r) * g.channels * g.pitch + g.left * LANES
            if 0 <= row < g.height:
                load_row(chunks.source, (block + b) * g.height + row, g.channels, g.width, inputs, at, g.pitch, False)
            else:
                clear_row(inputs, at, g.channels, g.width, g.pitch)
        for r in range(rows):
            size = g.out_channels * g.out_width
            row, at = (block + b) * g.out_height + first + r, (b * chunks.rows + r) * size * LANES
            load_row(chunks.gradient, row, g.out_channels, g.out_width, outputs, at, g.out_width * LANES, False)
            if block + b == chunks.all_blocks - 1 and chunks.last_lanes < LANES:
                for x in range(size):
                    real = keep(load(ONE, outputs, at + x * LANES, LANES), (1 << chunks.last_lanes) - 1)
                    store(outputs, at + x * LANES, LANES, real)
    return blocks, rows
