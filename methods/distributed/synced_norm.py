"""Batch norm whose statistics are those of the whole batch although each process has a part of it.

Forward and backward equal those of one process up to rounding, for parts of any size. torch's own SyncBatchNorm works on GPUs only.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn

AXES = (0, 2, 3)


def statistics(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Mean, biased variance (both per channel) and number of values per channel of the parts of all processes together, in double.

    Each process sends the mean and the squared distances of its own part: sums of squares would cancel.
    """
    count = x.numel() // x.shape[1]
    var, mean = torch.var_mean(x, AXES, correction=0) if count else x.new_zeros(2, x.shape[1]).unbind()
    own = torch.cat([mean.double(), var.double() * count, mean.new_full((1,), count, dtype=torch.float64)])
    parts = [torch.empty_like(own) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, own)
    means, squares, counts = torch.stack(parts).split([x.shape[1], x.shape[1], 1], 1)
    total = counts.sum()
    mean = (counts * means).sum(0) / total
    return mean, (squares + counts * (means - mean).square()).sum(0) / total, total


class _Normalise(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float) -> tuple[Tensor, Tensor, Tensor]:
        """The normalised part, and the mean and unbiased variance of the whole batch."""
        mean, var, total = statistics(x)
        ctx.save_for_backward(x, weight, mean.to(x.dtype), (var + eps).rsqrt().to(x.dtype), total)
        unbiased = var * (total / (total - 1).clamp(min=1))
        ctx.mark_non_differentiable(mean, unbiased)
        return F.batch_norm(x, mean.to(x.dtype), var.to(x.dtype), weight, bias, False, 0.0, eps), mean, unbiased

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *_: Tensor) -> tuple[Tensor, Tensor | None, Tensor | None, None]:
        x, weight, mean, inverse, total = ctx.saved_tensors
        centred = x - mean.view(1, -1, 1, 1)
        own = torch.stack([grad.sum(AXES), (grad * centred).sum(AXES)])
        sums = own.to(torch.float64, copy=True)  # the own ones are needed below
        dist.all_reduce(sums)
        level, slope = (sums / total).to(x.dtype)
        scale = inverse if weight is None else inverse * weight
        moved = grad - level.view(1, -1, 1, 1) - centred * (inverse.square() * slope).view(1, -1, 1, 1)
        # Of the parameters only this part's share: the loop adds up the gradients of all processes.
        parameters = (None, None) if weight is None else (own[1] * inverse, own[0])
        return moved * scale.view(1, -1, 1, 1), *parameters, None


class SyncedNorm(nn.BatchNorm2d):
    """In train mode over all processes; in eval mode any batch norm."""

    running_mean: Tensor
    running_var: Tensor
    num_batches_tracked: Tensor
    momentum: float

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return super().forward(x)
        own = self.running_mean.dtype  # of the statistics, where the feature maps are in bfloat16
        out, mean, var = _Normalise.apply(x.to(own), self.weight, self.bias, self.eps)
        with torch.no_grad():
            self.num_batches_tracked.add_(1)
            self.running_mean.mul_(1 - self.momentum).add_(mean.to(own), alpha=self.momentum)
            self.running_var.mul_(1 - self.momentum).add_(var.to(own), alpha=self.momentum)
        return out.to(x.dtype)


def synchronise(norms: list[nn.BatchNorm2d]) -> None:
    """Make batch norms synchronised ones; their parameters and buffers stay theirs."""
    for norm in norms:
        norm.__class__ = SyncedNorm
