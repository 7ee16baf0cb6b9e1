"""A convolution over lists of kept weights, forward or backward: rows come in (source.py), are added up, and go out (sink.py)."""

from __future__ import annotations

from methods.sparse.geometry import GROUP
from methods.sparse.jit import kernel
from methods.sparse.lanes import LANES, add_scaled, add_scaled_all, load, store, zeros
from methods.sparse.scalars import float_at, int_at
from methods.sparse.sink import finish
from methods.sparse.source import clear_borders, clear_row, load_row

SIDE, SQUARE = (0,) * GROUP, (0,) * GROUP**2  # a tile of as many channels as positions


@kernel
def convolve(tile, first, last, source, lists, geometry, sink, ring, results):
    """Pieces `first` to `last` of the work: bands of steps, block by block.

    `ring` holds the window of rows; a row takes the place of the one that is no longer needed. `results` holds a tile of positions of all
    output channels.
    """
    g = geometry
    row_size = g.channels * g.pitch
    bands = (g.steps + g.band - 1) // g.band
    clear_borders(ring, g.window * g.channels, g.left, g.width, g.pitch)
    for piece in range(first, last):
        block, start = piece // bands, piece % bands * g.band
        stop = min(g.steps, start + g.band)
        row = start * g.advance + g.low
        for step in range(start, stop):
            begin = step * g.advance + g.low
            row = max(row, begin)
            while row < begin + g.window:
                at = (row - g.low) % g.window * row_size + g.left * LANES
                if 0 <= row < g.height:
                    own = start * g.advance <= row < stop * g.advance
                    load_row(source, block * g.height + row, g.channels, g.width, ring, at, g.pitch, own)
                else:
                    clear_row(ring, at, g.channels, g.width, g.pitch)
                row += 1
            base = (begin - g.low) % g.window * row_size
            for y in range(step * g.spacing, min(g.out_height, (step + 1) * g.spacing)):
                for x in range(g.spacing):
                    if lists.segments == 0:
                        results_of_all(lists, g, sink, ring, results, base, block, y, x)
                    else:
                        results_of_few(tile, lists, g, sink, ring, results, base, block, y, x)


@kernel
def results_of_few(tile, lists, g, sink, ring, results, base, block, y, x):
    """Every `spacing`-th result of output row y, from column x on, of all channels, by lists of kept weights.

    Where weights are many the lists come in segments of input channels, so that the rows in use stay in the nearest cache; where they are
    few there is one segment. Either way, and in `results_of_all`, a result adds up its weights in the order of channel, kernel row, column.
    """
    size, segments, channels = len(tile), lists.segments, g.out_channels
    ring_size = g.window * g.channels * g.pitch
    parity = y % g.spacing * g.spacing + x
    count = (g.out_width - x + g.spacing - 1) // g.spacing
    slot = (block * g.slots + y // g.slot) * channels * 3 * LANES
    for done in range(0, count, size):
        at = base + done * g.stride * LANES
        for segment in range(segments):
            entry = (parity * segments + segment) * channels
            for c in range(channels):
                total = zeros(tile) if segment == 0 else load(tile, results, c * size * LANES, LANES)
                begin, end = int_at(lists.start, entry + c), int_at(lists.start, entry + c + 1)
                if g.stride == 1:  # a step that the compiler knows makes addresses immediate
                    total = add_kept(total, lists, begin, end, ring, at, ring_size, LANES)
                else:
                    total = add_kept(total, lists, begin, end, ring, at, ring_size, g.stride * LANES)
                store(results, c * size * LANES, LANES, total)
                if segment == segments - 1:
                    place = ((block * g.out_height + y) * channels + c) * g.out_width + x + done * g.spacing
                    finish(sink, results, c * size * LANES, min(size, count - done), place, g.spacing, slot + c * 3 * LANES)


@kernel
def add_kept(total, lists, begin, end, ring, at, ring_size, step):
    """The total plus what entries `begin` to `end` of the lists add to it."""
    for k in range(begin, end):
        place = at + int_at(lists.offset, k)
        if place >= ring_size:
            place -= ring_size
        total = add_scaled(total, ring, place, step, float_at(lists.weight, k))
    return total


@kernel
def results_of_all(lists, g, sink, ring, results, base, block, y, x):
    """The same where most weights are there: every input is loaded once for the channels of a group, zeros are multiplied with."""
    channels, ring_size = g.out_channels, g.window * g.channels * g.pitch
    parity = y % g.spacing * g.spacing + x
    count = (g.out_width - x + g.spacing - 1) // g.spacing
    slot = (block * g.slots + y // g.slot) * channels * 3 * LANES
    begin, end = int_at(lists.start, parity), int_at(lists.start, parity + 1)
    groups = (channels + GROUP - 1) // GROUP
    for done in range(0, count, GROUP):
        at = base + done * g.stride * LANES
        for group in range(groups):
            total, entry = zeros(SQUARE), (begin * groups + group * (end - begin)) * GROUP
            for k in range(begin, end):
                place = at + int_at(lists.offset, k)
                if place >= ring_size:
                    place -= ring_size
                total = add_scaled_all(total, SIDE, SIDE, ring, place, g.stride * LANES, lists.weight, entry + (k - begin) * GROUP)
            store(results, 0, LANES, total)
            for c in range(group * GROUP, min(channels, (group + 1) * GROUP)):
                place = ((block * g.out_height + y) * channels + c) * g.out_width + x + done * g.spacing
                finish(sink, results, c % GROUP * GROUP * LANES, min(GROUP, count - done), place, g.spacing, slot + c * 3 * LANES)
