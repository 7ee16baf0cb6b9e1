"""The features before a network's last layer, where they can be had."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from methods.evaluation.trust.budget import Counter
from methods.networks.resnet import Net


def features_of(net: nn.Module) -> Callable[[Tensor], Tensor] | None:
    """Images -> [n, features]: of networks of the suite, and of any module with a method `features`; None for others."""
    if isinstance(net, Net):
        return lambda x: _before_head(net, x)
    own = getattr(net, "features", None)
    return own if callable(own) and not isinstance(own, nn.Module) else None


def _before_head(net: Net, x: Tensor) -> Tensor:
    seen: list[Tensor] = []
    hook = net.head.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    try:
        net(x)
    finally:
        hook.remove()
    return seen[0].flatten(1)


@dataclass(frozen=True)
class Counted:
    """Features whose passes are counted, of so many images at once."""

    features: Callable[[Tensor], Tensor]
    counter: Counter
    chunk: int

    def __call__(self, x: Tensor) -> Tensor:
        self.counter.passes(len(x) * (2 if torch.is_grad_enabled() and x.requires_grad else 1))
        return torch.cat([self.features(chunk) for chunk in x.split(self.chunk)])
