"""Values of the weights that a layer keeps: by a law, by a small codebook, or one by one. No tensors of torch.

law: one magnitude with the signs that methods.core.signs draws: nothing is stored but the magnitude.
codebook: at most MOST_LEVELS different values, coded at about their entropy: one bit per weight where signs were trained.
real: float32 as they are; or rounded to float16, if the user asked for that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from methods.networks.compact.coder import Coder
from methods.networks.compact.mask import blocks

MOST_LEVELS = 256
PRIOR = 0.5  # of each of two branches, against those seen


@dataclass(frozen=True, kw_only=True)
class Values:
    """How the kept weights of a layer are given: the numbers that say so (a magnitude, a codebook, or the weights)."""

    kind: str
    numbers: np.ndarray


def describe(kept: np.ndarray, signs: np.ndarray | None) -> Values:
    """The cheapest description of kept weights (float32, in order); `signs` are those of the law for the same weights."""
    if not kept.size:
        return Values(kind="codebook", numbers=kept)
    size = np.abs(kept[0])
    if signs is not None and np.array_equal(kept, signs * size):
        return Values(kind="law", numbers=size.reshape(1))
    levels = np.unique(kept)
    if len(levels) <= MOST_LEVELS and 2 * len(levels) <= len(kept):
        return Values(kind="codebook", numbers=levels)
    return Values(kind="real", numbers=kept)


def code(coder: Coder, count: int, levels: int, places: np.ndarray | None = None) -> np.ndarray:
    """For each of `count` weights its place in a sorted codebook of `levels` values, given for an encoder.

    A place is told from its highest binary digit down; the chance of each digit is learnt from the weights with the same higher ones.
    """
    depth = max(levels - 1, 0).bit_length()
    prefix = np.zeros(count, np.int64)
    for digit in reversed(range(depth)):
        ones, seen = np.zeros(1 << depth), np.zeros(1 << depth)
        for part in blocks(count, 2048):
            node = prefix[part]
            chance = (ones[node] + PRIOR) / (seen[node] + 2 * PRIOR)
            bits = coder.bits(chance, None if places is None else (places[part] >> digit & 1).astype(bool))
            ones += np.bincount(node, bits, len(ones))
            seen += np.bincount(node, minlength=len(seen))
            prefix[part] = 2 * node + bits
    if count and (not levels or int(prefix.max()) >= levels):
        raise ValueError(f"a weight beyond the {levels} values of its codebook")
    return prefix
