"""Masks as coded bits: an adaptive model of which weights a layer kept. No tensors of torch.

Trained masks are far from random: whole channels are empty, and kept weights of a kernel come together. So a mask [out][in][tap] is told in
three parts. (1) Which kernels keep anything: the chance of each is learnt, while coding, from its row and its column so far. (2) How many
weights each of these keeps: learnt from the ones before. (3) Which taps these are: learnt from how often each tap was kept before.
A random mask, given how many weights it keeps, costs its entropy and about 0.1 % more; trained ones cost less.

What is learnt is learnt in blocks that double in size, since both directions must know the same and a block is coded at once. Arithmetic
here is part of the file format: see methods.networks.compact.coder.
"""

from __future__ import annotations

from math import lgamma, log

import numpy as np

from methods.networks.compact.coder import Coder

LAYER = 32.0  # how many kernels the expected chance of a layer counts for, against the ones seen
COUNTS = 2.0  # the same for how many weights a kernel keeps
TAPS = 64.0  # and for how often each tap is kept
LEAST = 2.0**-20
STRENGTHS = (*(2.0**i for i in range(-2, 13)), 2.0**30)  # of the layer's chance against a row's or a column's own


def code(coder: Coder, shape: tuple[int, int, int], kept: int, model: tuple[int, int], mask: np.ndarray | None = None) -> np.ndarray:
    """The mask (bool) of a layer of this shape that keeps `kept` weights, given for an encoder.

    `model` says how different rows and columns are: places in STRENGTHS. ValueError: the bits are those of no such mask.
    """
    rows, columns, taps = shape
    size = rows * columns * taps
    if kept in (0, size):
        return np.full(shape, kept == size)
    tails = _tails(kept / size, taps)
    told = None if mask is None else np.asarray(mask.any(2))
    occupied = _kernels(coder, (rows, columns), tails[0], STRENGTHS[model[0]], STRENGTHS[model[1]], told)
    number = int(occupied.sum())
    if not number <= kept <= number * taps:
        raise ValueError(f"a mask of {kept} weights in {number} kernels")
    kernels = None if mask is None else mask[occupied]
    counts = _counts(coder, number, taps, tails, None if kernels is None else kernels.sum(1))
    full = np.zeros(shape, bool)
    full[occupied] = _taps(coder, counts, taps, kernels)
    if int(full.sum()) != kept:
        raise ValueError(f"a mask of {int(full.sum())} weights instead of {kept}")
    return full


def blocks(count: int, most: int) -> list[slice]:
    """Consecutive ranges of 1, 1, 2, 4, ... up to `most` positions: little is coded before something is known."""
    edges = [0]
    while edges[-1] < count:
        edges.append(min(count, max(1, min(2 * edges[-1], edges[-1] + most))))
    return [slice(a, b) for a, b in zip(edges, edges[1:], strict=False)]


def _kernels(
    coder: Coder, shape: tuple[int, int], expected: float, row_strength: float, column_strength: float, told: np.ndarray | None
) -> np.ndarray:
    """Which kernels keep a weight. Chances of row and column are combined as odds: a row with twice the odds has them in each column."""
    occupied = np.zeros(shape, bool)
    in_row, in_column = np.zeros(shape[0]), np.zeros(shape[1])
    total, seen, columns = 0.0, 0.0, blocks(shape[1], 64)
    for high in blocks(shape[0], 64):
        for wide in columns:
            chance = (total + LAYER * min(max(expected, LEAST), 1 - LEAST)) / (seen + LAYER)
            row = (in_row[high] + row_strength * chance) / (wide.start + row_strength)
            column = (in_column[wide] + column_strength * chance) / (high.start + column_strength)
            odds = (row / (1 - row))[:, None] * (column / (1 - column))[None] * ((1 - chance) / chance)
            bits = coder.bits((odds / (1 + odds)).ravel(), None if told is None else told[high, wide].ravel()).reshape(odds.shape)
            occupied[high, wide] = bits
            in_row[high] += bits.sum(1)
            in_column[wide] += bits.sum(0)
            total, seen = total + float(bits.sum()), seen + bits.size
    return occupied


def _counts(coder: Coder, number: int, taps: int, tails: list[float], told: np.ndarray | None) -> np.ndarray:
    """How many weights each of the kernels that keep any keeps: one, or more; two of these, or more; and so on."""
    counts = np.ones(number, np.int64)
    for reached in range(1, taps):
        going = np.flatnonzero(counts == reached)
        expected, more, seen = tails[reached] / max(tails[reached - 1], LEAST), 0.0, 0.0
        for part in blocks(len(going), 2048):
            places = going[part]
            chance = np.full(len(places), (more + COUNTS * expected) / (seen + COUNTS))
            bits = coder.bits(chance, None if told is None else told[places] > reached)
            counts[places] += bits
            more, seen = more + float(bits.sum()), seen + len(places)
    return counts


def _taps(coder: Coder, counts: np.ndarray, taps: int, told: np.ndarray | None) -> np.ndarray:
    """Which taps each of these kernels keeps, tap by tap: as many as are left of its count, over the taps that are left."""
    kept = np.zeros((len(counts), taps), bool)
    often = np.full(taps, TAPS)
    for part in blocks(len(counts), 2048):
        left = counts[part].copy()
        for tap in range(taps):
            bits = left == taps - tap  # as many to keep as taps to come: nothing to tell
            unsure = (left > 0) & ~bits
            chance = left[unsure] * (often[tap] / often[tap:].sum())  # whole numbers: their sum does not depend on the order
            bits[unsure] = coder.bits(chance, None if told is None else told[part, tap][unsure])
            kept[part, tap] = bits
            left -= bits
        often += kept[part].sum(0)
    return kept


def _tails(density: float, taps: int) -> list[float]:
    """The chance that a kernel of so many taps keeps at least 1, 2, ... of them, if each is kept by itself."""
    chances = [1.0]
    for _ in range(taps):  # one more tap: as many kept as before, or one more
        chances = [a * (1 - density) + b * density for a, b in zip([*chances, 0.0], [0.0, *chances], strict=True)]
    tails, tail = [], 0.0
    for chance in reversed(chances[1:]):
        tail += chance
        tails.append(tail)
    return tails[::-1]


def model_for(mask: np.ndarray) -> tuple[int, int]:
    """The model that suits a mask: how much rows, and columns, differ beyond chance says how much the layer's chance counts for them.

    If densities follow a beta distribution of strength s, their variance is d (1 - d) / (s + 1) and sampling adds its own.
    """
    occupied = mask.any(2)
    density = occupied.mean()
    places = []
    for axis in (1, 0):
        length = occupied.shape[axis]
        spread = occupied.mean(axis).var() - density * (1 - density) / length
        strength = density * (1 - density) / spread - 1 if spread > 0 else STRENGTHS[-1]
        places.append(int(np.argmin([abs(np.log2(max(strength, STRENGTHS[0])) - np.log2(s)) for s in STRENGTHS])))
    return places[0], places[1]


def entropy(size: int, kept: int) -> float:
    """Bits that a mask of `kept` of `size` weights needs if nothing more is known of it: log2 of how many there are."""
    return (lgamma(size + 1) - lgamma(kept + 1) - lgamma(size - kept + 1)) / log(2)
