"""What becomes of a kernel's results on their way to memory: shortcut, ReLU's gradient, sums for batch norm."""

from __future__ import annotations

from typing import NamedTuple

from methods.sparse.bits import bits_at, keep
from methods.sparse.jit import kernel
from methods.sparse.lanes import LANES, ONE, add, fma, load, store, store_past, zeros


class Sink(NamedTuple):
    """What becomes of a kernel's results: + `added`, ReLU's gradient by `bits`, memory, sums for batch norm.

    The sums are those of the values and of their products with `partner` (without one: with themselves), and with `second` where a map
    enters two batch norms. They are kept per lane and per `slot` of rows: sums.py adds them up in double precision and in a fixed order.
    """

    values: int
    added: int
    bits: int
    sums: int  # [slots, channels, 3, 16], flat
    partner: int
    second: int
    past: bool  # whether `values` go to memory past the caches


@kernel
def finish(sink, results, at, count, place, spacing, slot):
    """Send `count` vectors results[at:] to every `spacing`-th position of the map from `place` on; `slot` is where their sums go."""
    step = LANES
    added, bits, sums = sink.added != 0, sink.bits != 0, sink.sums != 0
    partner, second = sink.partner != 0, sink.second != 0
    # Sums go on from where they are, position by position: in an order that does not depend on how many positions are finished at once.
    total = load(ONE, sink.sums, slot, step) if sums else zeros(ONE)
    products = load(ONE, sink.sums, slot + step, step) if sums else total
    others = load(ONE, sink.sums, slot + 2 * step, step) if sums and second else total
    for i in range(count):
        value = load(ONE, results, at + i * step, step)
        x = place + i * spacing
        if added:
            value = add(load(ONE, sink.added, x * step, step), value)
        if bits:
            value = keep(value, bits_at(sink.bits, x))
        if sink.past:
            store_past(sink.values, x * step, value)
        else:
            store(sink.values, x * step, step, value)
        if sums:
            total = add(value, total)
            if partner:
                products = fma(value, load(ONE, sink.partner, x * step, step), products)
                if second:
                    others = fma(value, load(ONE, sink.second, x * step, step), others)
            else:
                products = fma(value, value, products)
    if sums:
        store(sink.sums, slot, step, total)
        store(sink.sums, slot + step, step, products)
        if second:
            store(sink.sums, slot + 2 * step, step, others)
