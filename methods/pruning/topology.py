"""A mask that is renewed while the weights under it are trained: which weights die, and where as many grow (FlyingBird)."""

from __future__ import annotations

from math import ceil, floor
from typing import Any

import torch
from torch import Tensor, nn

from methods.pruning.makers import sign
from methods.pruning.masks import top_mask


def survivors(weight: Tensor, mask: Tensor, rate: float, extra: float = 0.0) -> tuple[Tensor, int]:
    """Mask of what outlives an update, and how many die by the base rate alone, which is what is regrown.

    Survivors are strictly above the threshold: active weights that are still 0 die even beyond the rate. A full layer loses nothing.
    """
    size, active = mask.numel(), int(mask.sum())
    if active == size or active == 0:
        return mask, 0
    magnitude, cut = weight.abs(), size - active + ceil(rate * active)

    def above(rank: int) -> Tensor:
        return magnitude > magnitude.flatten().kthvalue(min(rank, size)).values

    base = above(cut)
    alive = above(cut + ceil(rate * extra * active)) if extra else base
    return alive, active - int(base.sum())


def grown_randomly(mask: Tensor, wanted: float, u: Tensor) -> Tensor:
    """The mask after each inactive position came alive with the same chance: `wanted` is met in expectation only. u: uniform draws."""
    inactive = mask.numel() - int(mask.sum())
    return mask | (u < wanted / inactive) if inactive else mask


def grown_by_gradient(mask: Tensor, wanted: float, gradient: Tensor) -> Tensor:
    """The mask after the inactive positions of largest gradient (of the weights in use, pruned ones included) came alive."""
    inactive = mask.numel() - int(mask.sum())
    return mask | top_mask(gradient.abs().masked_fill(mask, -1), min(floor(wanted), inactive))


class _Hold(torch.autograd.Function):
    """weight * mask whose gradient ignores the mask: growth may look at it, and `Masked.hold` discards what it did elsewhere."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, mask: Tensor) -> Tensor:
        return weight * mask

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return grad, None


class Masked(nn.Module):
    """weight * mask, or sign(weight) * mask: the mask stands outside the sign, because sign(0) = +1 would make a dense network."""

    mask: Tensor

    def __init__(self, weight: Tensor, mask: Tensor, *, binary: bool = False, grows_by_gradient: bool = False):
        super().__init__()
        self.weight = nn.Parameter(weight * mask)
        self.register_buffer("mask", mask)
        self.binary, self.grows_by_gradient = binary, grows_by_gradient

    @property
    def places(self) -> Tensor | None:
        """Where the gradient is used: `hold` discards what it did elsewhere, unless growth is to look at it."""
        return None if self.grows_by_gradient else self.mask

    def prepare(self) -> None:
        if self.binary:
            self.weight.clamp_(-1, 1)

    def forward(self) -> Tensor:
        return _Hold.apply(sign(self.weight) if self.binary else self.weight, self.mask)

    @torch.no_grad()
    def hold(self, optimizer: torch.optim.Optimizer) -> None:
        """Zero the masked weights and all that the optimiser remembers of them (momentum; both moments of Adam)."""
        self.weight.mul_(self.mask)
        for value in optimizer.state[self.weight].values():
            if isinstance(value, Tensor) and value.shape == self.weight.shape:
                value.mul_(self.mask)

    @torch.no_grad()
    def update(self, rate: float, *, prune: float = 0.0, growth: float = 0.0, u: Tensor | None) -> tuple[int, int]:
        """Death, then growth, at random (u: uniform draws) or, without draws, by gradient. Returns how many died and how many grew.

        Grown weights start at 0 (binary: +1, until the next step settles their sign); one that dies and regrows at once keeps its value.
        """
        alive, dead = survivors(self.weight, self.mask, rate, prune)
        wanted = (1 + growth) * dead
        if u is not None:
            mask = grown_randomly(alive, wanted, u)
        else:
            assert self.weight.grad is not None, "growth by gradient comes after backward"
            mask = grown_by_gradient(alive, wanted, self.weight.grad)
        died, grown = int(self.mask.sum() - alive.sum()), int(mask.sum() - alive.sum())
        self.mask.copy_(mask)
        return died, grown
