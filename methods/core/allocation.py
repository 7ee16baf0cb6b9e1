"""How many weights each layer keeps: the paper's adaptive rule, one rate for all layers, and the rules of sparse training.

Counts follow the paper's official implementation: see `allocate`. Sparsity r is the pruned fraction; keep = 1 - r.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from math import floor, prod

from methods.core.errors import UserError

DISTRIBUTIONS = ("igq", "erk", "uniform")


def keep_fraction(sparsity: float) -> float:
    """1 - r in decimal arithmetic: 0.99 gives 0.01 exactly as typed, not 0.010000000000000009."""
    if not 0 <= sparsity < 1:
        raise UserError(f"'sparsity: {sparsity}' must be in [0, 1): it is the pruned fraction r")
    return float(1 - Decimal(repr(sparsity)))


def allocate(sizes: Sequence[int], keep: float, p: float, *, rounded: bool = True, capped: bool = True) -> list[float]:
    """Kept fraction of each layer under adaptive pruning with exponent p: kept_i / size_i^p is constant, capped at the whole layer.

    Walks from the smallest layer (stable on ties) and re-solves the constant after each one, so that both the surplus of capped layers
    and rounding remainders flow to the larger ones. p = 1 is one rate for all layers, p = 0 one count for all layers.

    The official code counts whole weights on the way (`rounded`). The paper's equation has neither that nor the cap, yet at r = 0.99 and
    p = 0.1 it asks the first layer for twice the weights it has.
    """
    if not 0 <= p <= 1:
        raise UserError(f"'p: {p}' must be in [0, 1] (0: same count in each layer, 1: same rate)")
    order = sorted(range(len(sizes)), key=lambda i: sizes[i])
    powers = [sizes[i] ** p for i in order]
    exact = keep * sum(sizes)
    budget: float = int(exact) if rounded else exact
    constant = exact / sum(powers)
    fractions = [0.0] * len(sizes)
    for rank, i in enumerate(order):
        wanted = constant * sizes[i] ** (p - 1)
        fractions[i] = min(1.0, wanted) if capped else wanted
        kept = fractions[i] * sizes[i]
        budget -= int(kept) if rounded else kept
        rest = sum(powers[rank + 1 :])
        constant = budget / rest if rest else 0.0
    return fractions


def kept_count(size: int, fraction: float) -> int:
    """Weights kept of `size`: the pruned part is rounded down, so this is usually floor(fraction * size) + 1, as in the official code."""
    return size - floor((1 - fraction) * size)


def adaptive_counts(sizes: Sequence[int], sparsity: float, p: float) -> list[int]:
    """Kept weights per layer of the paper's method."""
    fractions = allocate(sizes, keep_fraction(sparsity), p)
    return [kept_count(size, fraction) for size, fraction in zip(sizes, fractions, strict=True)]


def fixed_counts(sizes: Sequence[int], sparsity: float) -> list[int]:
    """Kept weights per layer at one rate for every layer, each layer rounded by itself (edge-popup, HYDRA, RST)."""
    return [kept_count(size, keep_fraction(sparsity)) for size in sizes]


def layer_counts(sizes: Sequence[int], sparsity: float, p: float | str, *, rule: str) -> list[int]:
    """Kept weights per layer by a rule: "adaptive" (any p) or "fixed" (the official code of baselines that know one rate only, p = 1).

    The two differ by a few weights at p = 1, because the adaptive rule also hands rounding remainders to the larger layers.
    """
    if rule == "adaptive" and not isinstance(p, str):
        return adaptive_counts(sizes, sparsity, p)
    if rule == "fixed" and p == 1:
        return fixed_counts(sizes, sparsity)
    raise UserError(f"'options.counts: {rule}' with 'p: {p}' is not possible; allowed: adaptive with p in [0, 1], fixed with p = 1")


def exact_shares(sizes: Sequence[int], *, sparsity: float, p: float, capped: bool = True) -> list[float]:
    """Kept weights per layer as the paper's equation gives them, not rounded; it has no cap, the networks do."""
    fractions = allocate(sizes, 1 - sparsity, p, rounded=False, capped=capped)
    return [fraction * size for fraction, size in zip(fractions, sizes, strict=True)]


def igq_fractions(sizes: Sequence[int], keep: float) -> list[float]:
    """Kept fractions by the ideal gas quota: 1 / kept = 1 / size + F, F by bisection until the total is right to within one weight.

    Stops as early as the released solver, so that the counts are its counts.
    """
    low, high, target = 0.0, 1e20, keep * sum(sizes)
    while True:
        middle = (low + high) / 2
        surplus = sum(size / (1 + middle * size) for size in sizes) - target
        if abs(surplus) < 1 or middle in (low, high):
            return [1 / (1 + middle * size) for size in sizes]
        low, high = (middle, high) if surplus > 0 else (low, middle)


def erk_fractions(shapes: Sequence[Sequence[int]], keep: float) -> list[float]:
    """Kept fractions proportional to sum(shape) / prod(shape); layers that would need more than all their weights stay dense."""
    raw = [sum(shape) / prod(shape) for shape in shapes]
    dense: set[int] = set()
    while True:
        rest = [i for i in range(len(shapes)) if i not in dense]
        budget = keep * sum(map(prod, shapes)) - sum(prod(shapes[i]) for i in dense)
        scale = budget / sum(raw[i] * prod(shapes[i]) for i in rest)
        largest = max(raw[i] for i in rest)
        if largest * scale <= 1:
            return [1.0 if i in dense else scale * raw[i] for i in range(len(shapes))]
        dense |= {i for i in rest if raw[i] == largest}


def start_counts(shapes: Sequence[Sequence[int]], keep: float, distribution: str) -> list[int]:
    """Active weights per layer at the start. Counts are exact for every rule (the released erk and uniform draw them as coin flips)."""
    sizes = [prod(shape) for shape in shapes]
    if distribution not in DISTRIBUTIONS:
        raise UserError(f"unknown 'options.distribution: {distribution}'; allowed: {', '.join(DISTRIBUTIONS)}")
    fractions = {"igq": igq_fractions(sizes, keep), "erk": erk_fractions(shapes, keep), "uniform": [keep] * len(sizes)}[distribution]
    return [kept_count(size, fraction) for size, fraction in zip(sizes, fractions, strict=True)]
