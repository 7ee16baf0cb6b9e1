"""Connections that are awake or asleep, and the drawing of those that wake up next (BCS)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from methods.pruning.masks import top_mask


class _Awake(torch.autograd.Function):
    """sign * [theta > 0]; the gradient passes through to theta where it is awake."""

    @staticmethod
    def forward(ctx: Any, theta: Tensor, signs: Tensor) -> Tensor:
        weight = signs * (theta > 0)
        ctx.save_for_backward(weight)
        return weight

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return ctx.saved_tensors[0] * grad, None


class Connections(nn.Module):
    """signs * theta where theta > 0 (binary: signs alone), else 0. Signs are never trained; sleeping thetas get no gradient."""

    signs: Tensor

    def __init__(self, theta: Tensor, signs: Tensor, *, binary: bool = False):
        super().__init__()
        self.theta = nn.Parameter(theta)
        self.register_buffer("signs", signs)
        self.binary = binary

    def prepare(self) -> None:
        if self.binary:
            self.theta.clamp_(max=1)

    def forward(self) -> Tensor:
        if self.binary:
            return _Awake.apply(self.theta, self.signs)
        return self.signs * self.theta.relu()

    @torch.no_grad()
    def shake(self, was_active: Tensor, noise: Tensor, lr: float, *, wake: bool) -> None:
        """After the optimiser: noise on what was active before it. Without `wake`, what slept before sleeps on."""
        self.theta.add_(torch.where(was_active, lr * noise, 0))
        if not wake:
            self.theta.copy_(torch.where(was_active, self.theta, self.theta.clamp(max=0)))


def requests(sizes: Sequence[int], u: Tensor) -> list[int]:
    """How many connections each layer is to be given: one layer per uniform draw of u, in proportion to the layers' sizes."""
    ends = torch.tensor(sizes, device=u.device, dtype=torch.float64).cumsum(0)
    layers = torch.bucketize(u.double() * sum(sizes), ends, right=True).clamp_(max=len(sizes) - 1)
    return layers.bincount(minlength=len(sizes)).tolist()


@torch.no_grad()
def connect(theta: Tensor, wanted: int, keys: Tensor, value: float) -> None:
    """Set `wanted` sleeping entries, those of largest key (in [0, 1)), to `value`, in place; all of them if there are fewer."""
    sleeping = theta <= 0
    theta.masked_fill_(top_mask(keys.masked_fill(~sleeping, -1), wanted) & sleeping, value)
