"""Networks to measure: random weights under random masks."""

from __future__ import annotations

import torch
from torch import Tensor

from methods.core.allocation import adaptive_counts
from methods.networks.resnet import Net, build


def pruned(arch: str, *, keep: float = 0.01, width: float = 1.0, images: Tensor | None = None) -> Net:
    """Random +-1 weights under random masks (p = 0.1), a last batch norm, with the statistics of some images (none: of random ones)."""
    draws = torch.Generator().manual_seed(1)
    net = build(arch, classes=10, lbn=True, width=width)
    convs = [conv for _, conv in net.convs()]
    with torch.no_grad():
        for conv, kept in zip(convs, adaptive_counts([conv.weight.numel() for conv in convs], 1 - keep, 0.1), strict=True):
            mask = torch.zeros(conv.weight.numel()).index_fill_(0, torch.rand(conv.weight.numel(), generator=draws).topk(kept).indices, 1)
            conv.weight.copy_((torch.randint(2, conv.weight.shape, generator=draws) * 2 - 1) * mask.view_as(conv.weight))
        for norm in net.norms():
            norm.momentum = 1.0  # running statistics are those of the last batch
        net.train()(torch.rand(32, 3, 32, 32, generator=draws) if images is None else images)
    return net.eval().requires_grad_(False)
