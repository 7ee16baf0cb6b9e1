"""Learned codebooks: a tensor rounded to 2^bits values of its own and zero (ATMC's quantiser).

Zero is not one of the 2^bits levels: it is a further, fixed centre. The values are k-means centres, fitted again each time from seeds that
are entries of the tensor; nothing of an earlier fit is kept.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from methods.core.errors import UserError

SEEDS = ("random", "sign_aware")


class Codebook(NamedTuple):
    """The free centres followed by the fixed zero, each entry's centre, and how many iterations the fit took."""

    centres: Tensor
    assignment: Tensor
    iterations: int

    def values(self, like: Tensor) -> Tensor:
        """The rounded tensor, in the shape of the one that was fitted."""
        return self.centres[self.assignment].view(like.shape)


def nearest(values: Tensor, centres: Tensor) -> Tensor:
    """Index of the centre nearest to each value; of equally near ones the first. One pass per centre, no values x centres table."""
    index = torch.zeros(values.shape, dtype=torch.int64, device=values.device)
    best = (values - centres[0]).abs()
    for j in range(1, len(centres)):
        distance = (values - centres[j]).abs()
        closer = distance < best
        index.masked_fill_(closer, j)
        best = torch.where(closer, distance, best)
    return index


def means(values: Tensor, index: Tensor, count: int) -> Tensor:
    """Mean of the values of each of the first `count` clusters; 0 for an empty one."""
    members = [index == j for j in range(count)]
    sums = torch.stack([torch.where(member, values, 0).sum() for member in members])
    return sums / torch.stack([member.sum() for member in members]).clamp(min=1)


def fit(values: Tensor, seeds: Tensor, *, iterations: int, tolerance: float) -> Codebook:
    """Lloyd's algorithm from the entries at the flat positions `seeds`, with one more centre that stays at zero.

    It stops when the squared sum of the centres' moves is below the tolerance: an absolute measure, so that small weights get an
    iteration or two. As in the official code the result pairs the last assignment with the centres moved after it, and a centre that
    lost all its entries goes to zero, where it comes before the fixed one.
    """
    flat = values.reshape(-1)
    centres = torch.cat([flat[seeds], flat.new_zeros(1)])
    done = 0
    while True:
        assignment = nearest(flat, centres)
        moved = torch.cat([means(flat, assignment, len(seeds)), flat.new_zeros(1)])
        shift = (moved - centres).abs().sum()
        centres, done = moved, done + 1
        if done >= iterations or shift.square() < tolerance:
            return Codebook(centres, assignment, done)


def fittable(weight: Tensor, levels: int) -> bool:
    """Whether a tensor has enough entries and non-zeros for so many levels; others are left as they are."""
    return weight.numel() > levels and int(weight.count_nonzero()) >= levels


def seed_positions(kind: str, weight: Tensor, values: Tensor, levels: int, generator: torch.Generator) -> Tensor:
    """Flat positions of the entries to start from, all different and all where the weight is not zero.

    random: any of them (official). With two levels both have one sign about half of the time, and then every entry of the other sign
    ends up at zero. sign_aware: half of the seeds among the positive values and half among the negative ones, as far as there are any.
    """
    if kind not in SEEDS:
        raise UserError(f"unknown 'options.quantiser.seeds: {kind}'; allowed: {', '.join(SEEDS)}")
    support = weight.reshape(-1).nonzero().squeeze(1)
    support = support[torch.randperm(len(support), generator=generator, device=support.device)]
    if kind == "sign_aware":
        positive = values.reshape(-1)[support] > 0
        halves = support[positive], support[~positive]
        first = [half[: levels // 2] for half in halves]
        support = torch.cat([*first, *(half[levels // 2 :] for half in halves)])
    return support[:levels]
