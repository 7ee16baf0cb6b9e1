"""Pruned networks for these tests."""

from __future__ import annotations

import torch

from methods.core.allocation import adaptive_counts
from methods.networks.resnet import Net, build


def pruned(arch: str = "rn18", *, width: float = 0.25, sparsity: float = 0.9, real: bool = False, seed: int = 0, **options) -> Net:
    """A network with random weights (+-1, or real) of which `sparsity` are zero; batch norms' parameters and statistics are random too."""
    draws = torch.Generator().manual_seed(seed)
    net = build(arch, **({"classes": 10, "width": width, "lbn": True, "mean": (0.5, 0.4, 0.3), "std": (0.2, 0.25, 0.3)} | options))
    convs = [conv for _, conv in net.convs()]
    with torch.no_grad():
        for conv, kept in zip(convs, adaptive_counts([conv.weight.numel() for conv in convs], sparsity, 0.1), strict=True):
            chosen = torch.rand(conv.weight.numel(), generator=draws).topk(kept).indices
            mask = torch.zeros(conv.weight.numel()).index_fill_(0, chosen, 1).view_as(conv.weight)
            signs = torch.randint(2, conv.weight.shape, generator=draws) * 2 - 1
            conv.weight.copy_((torch.randn(conv.weight.shape, generator=draws) if real else signs) * mask)
        if net.head.bias is not None:
            net.head.bias.copy_(torch.randn(net.head.bias.shape, generator=draws))
        for norm in net.norms():
            size = norm.running_var.shape
            norm.running_mean.copy_(torch.randn(size, generator=draws))
            norm.running_var.copy_(torch.rand(size, generator=draws) * 20 + 5)
            if norm.affine:
                norm.weight.copy_(torch.rand(size, generator=draws) + 0.5)
                norm.bias.copy_(torch.randn(size, generator=draws) * 0.3)
    return net


def images(count: int, side: int = 16, seed: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    draws = torch.Generator().manual_seed(seed)
    return torch.rand(count, 3, side, side, generator=draws), torch.randint(10, (count,), generator=draws)
