"""Projection onto so many non-zero entries, of all compressed tensors together or of each layer's (ATMC)."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from methods.core.allocation import allocate
from methods.networks.resnet import Net
from methods.pruning.masks import global_mask

Layers = Mapping[str, Mapping[str, Tensor]]


def compressed_layers(net: Net, makers: Mapping[str, nn.Module]) -> dict[str, dict[str, Tensor]]:
    """Per convolution, the tensors that are compressed: those of its maker, or its weight."""
    layers: dict[str, dict[str, Tensor]] = {name: {"weight": conv.weight} for name, conv in net.convs()}
    return layers | {name: dict(maker.named_parameters()) for name, maker in makers.items()}


def budgets(sizes: list[int], keep: float, p: float) -> list[int]:
    """Entries that each layer keeps: the paper's allocation over the dense sizes, rounded down."""
    return [int(fraction * size) for fraction, size in zip(allocate(sizes, keep, p), sizes, strict=True)]


def groups(layers: Layers, sizes: list[int], keep: float, p: float | str) -> list[tuple[list[Tensor], int]]:
    """The tensors that share a budget, and the budget. Budgets count dense weights, also where factors spend them."""
    parts: list[list[Tensor]] = [list(tensors.values()) for tensors in layers.values()]
    if isinstance(p, str):  # global
        return [([tensor for layer in parts for tensor in layer], int(keep * sum(sizes)))]
    return list(zip(parts, budgets(sizes, keep, p), strict=True))


@torch.no_grad()
def keep_largest(tensors: list[Tensor], kept: int) -> None:
    """Set all but the `kept` entries of largest magnitude, over all tensors together, to zero."""
    for tensor, mask in zip(tensors, global_mask([t.detach().abs() for t in tensors], kept), strict=True):
        tensor.masked_fill_(~mask, 0)
