"""How many weights each layer of a sparse network starts with, by the rules that sparse training knows."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from methods.errors import UserError
from methods.masks import kept_count

DISTRIBUTIONS = ("igq", "erk", "uniform")


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
    raw, dense = [sum(shape) / prod(shape) for shape in shapes], set()
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
