"""Which weights a layer keeps. Three separate questions: how many per layer (distribution), which (score), when (the method's schedule).

Counts follow the paper's official implementation: see `allocate`. Sparsity r is the pruned fraction; keep = 1 - r.
"""

from __future__ import annotations

from decimal import Decimal
from math import floor

import torch
from torch import Tensor

from methods.errors import UserError


def keep_fraction(sparsity: float) -> float:
    """1 - r in decimal arithmetic: 0.99 gives 0.01 exactly as typed, not 0.010000000000000009."""
    if not 0 <= sparsity < 1:
        raise UserError(f"'sparsity: {sparsity}' must be in [0, 1): it is the pruned fraction r")
    return float(1 - Decimal(repr(sparsity)))


def allocate(sizes: list[int], keep: float, p: float) -> list[float]:
    """Kept fraction of each layer under adaptive pruning with exponent p: kept_i / size_i^p is constant, capped at the whole layer.

    Walks from the smallest layer (stable on ties) and re-solves the constant after each one, so that both the surplus of capped layers
    and rounding remainders flow to the larger ones. p = 1 is one rate for all layers, p = 0 one count for all layers.
    """
    if not 0 <= p <= 1:
        raise UserError(f"'p: {p}' must be in [0, 1] (0: same count in each layer, 1: same rate)")
    order = sorted(range(len(sizes)), key=lambda i: sizes[i])
    powers = [sizes[i] ** p for i in order]
    budget = int(keep * sum(sizes))
    constant = keep * sum(sizes) / sum(powers)
    fractions = [0.0] * len(sizes)
    for rank, i in enumerate(order):
        fractions[i] = min(1.0, constant * sizes[i] ** (p - 1))
        budget -= int(fractions[i] * sizes[i])
        rest = sum(powers[rank + 1 :])
        constant = budget / rest if rest else 0.0
    return fractions


def kept_count(size: int, fraction: float) -> int:
    """Weights kept of `size`: the pruned part is rounded down, so this is usually floor(fraction * size) + 1, as in the official code."""
    return size - floor((1 - fraction) * size)


def adaptive_counts(sizes: list[int], sparsity: float, p: float) -> list[int]:
    """Kept weights per layer of the paper's method."""
    fractions = allocate(sizes, keep_fraction(sparsity), p)
    return [kept_count(size, fraction) for size, fraction in zip(sizes, fractions, strict=True)]


def fixed_counts(sizes: list[int], sparsity: float) -> list[int]:
    """Kept weights per layer at one rate for every layer, each layer rounded by itself (edge-popup, HYDRA, RST)."""
    return [kept_count(size, keep_fraction(sparsity)) for size in sizes]


def layer_counts(sizes: list[int], sparsity: float, p: float | str, *, rule: str) -> list[int]:
    """Kept weights per layer by a rule: "adaptive" (any p) or "fixed" (the official code of baselines that know one rate only, p = 1).

    The two differ by a few weights at p = 1, because the adaptive rule also hands rounding remainders to the larger layers.
    """
    if rule == "adaptive" and p != "global":
        return adaptive_counts(sizes, sparsity, p)
    if rule == "fixed" and p == 1:
        return fixed_counts(sizes, sparsity)
    raise UserError(f"'options.counts: {rule}' with 'p: {p}' is not possible; allowed: adaptive with p in [0, 1], fixed with p = 1")


def top_mask(score: Tensor, kept: int) -> Tensor:
    """Mask (bool, score's shape) of exactly the `kept` largest entries, by selection rather than sorting and without a host sync.

    Written out of place: a mask written through a flattened view of a channels_last tensor would be lost.
    """
    flat = score.reshape(-1)
    size = flat.numel()
    if 2 * kept <= size:
        chosen = torch.topk(flat, max(kept, 0), sorted=False).indices
        mask = torch.zeros(size, dtype=torch.bool, device=score.device).index_fill_(0, chosen, True)
    else:
        dropped = torch.topk(flat, max(size - kept, 0), largest=False, sorted=False).indices
        mask = torch.ones(size, dtype=torch.bool, device=score.device).index_fill_(0, dropped, False)
    return mask.view(score.shape)


def global_mask(scores: list[Tensor], kept: int) -> list[Tensor]:
    """Masks of the `kept` largest entries over all layers together (global pruning)."""
    flat = torch.cat([score.reshape(-1) for score in scores])
    mask = top_mask(flat, kept)
    parts = mask.split([score.numel() for score in scores])
    return [part.view(score.shape) for part, score in zip(parts, scores, strict=True)]
