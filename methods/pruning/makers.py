"""How the weight of a convolution is made from what is trained.

The network itself is always plain: its convolutions hold *effective* weights. A maker turns trained tensors (scores, latents, factors)
into an effective weight; `Realisation` writes all of them into the network once per optimiser step and carries the weights' gradients
back to the trained tensors afterwards. Attacks and forward passes in between see constants, so masks are never rebuilt in vain.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from methods.networks.resnet import Net
from methods.pruning.masks import top_mask


class _Mask(torch.autograd.Function):
    """Mask of the largest scores, so many or those of a mask; its gradient passes unchanged to every score, kept or pruned (edge-popup)."""

    @staticmethod
    def forward(ctx: Any, score: Tensor, kept: int | Tensor) -> Tensor:
        return (top_mask(score, kept) if isinstance(kept, int) else kept).to(score.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return grad, None


class _Sign(torch.autograd.Function):
    """Sign with sign(0) = +1; identity gradient without saturation (BinaryConnect as the paper's code has it)."""

    @staticmethod
    def forward(ctx: Any, latent: Tensor) -> Tensor:
        return torch.where(latent >= 0, 1.0, -1.0).to(latent.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad


def select(scores: Tensor, kept: int | Tensor) -> Tensor:
    """0/1 mask of the `kept` largest |scores|, or of those that a mask names. Ranking is by absolute value: the paper says highest, its
    code takes magnitudes."""
    return _Mask.apply(scores.abs(), kept)


def sign(latent: Tensor) -> Tensor:
    """+1 or -1 per entry, with a straight-through gradient."""
    return _Sign.apply(latent)


class Scored(nn.Module):
    """weight * mask(|scores|): the weight may be frozen (edge-popup, HYDRA's search) or trained under a fixed mask (HYDRA's finetune).

    `binary` puts sign(weight) in place of the weight, which is then BinaryConnect's latent. `kept` is a number of weights, or a mask where
    the number follows from the scores of all layers: a number would have to be waited for.
    """

    kept: int | Tensor
    places: Tensor | None = None  # the mask, where weights are trained under it

    def __init__(self, weight: Tensor, scores: Tensor, kept: int, *, train: str, binary: bool = False):
        super().__init__()
        self.weight = nn.Parameter(weight, requires_grad=train == "weight")
        self.scores = nn.Parameter(scores, requires_grad=train == "scores")
        self.kept = kept
        self.binary = binary

    def prepare(self) -> None:
        if self.binary and self.weight.requires_grad:
            self.weight.clamp_(-1, 1)

    def forward(self) -> Tensor:
        weight, mask = sign(self.weight) if self.binary else self.weight, select(self.scores, self.kept)
        if self.weight.requires_grad:
            self.places = mask.detach()
        return weight * mask


class Signed(nn.Module):
    """sign(latent): BinaryConnect, deterministic, no scale factor. Latents are clamped in place to [-1, 1] before they are used."""

    def __init__(self, latent: Tensor):
        super().__init__()
        self.latent = nn.Parameter(latent)

    def prepare(self) -> None:
        self.latent.clamp_(-1, 1)

    def forward(self) -> Tensor:
        return sign(self.latent)


class Realisation:
    """Keeps a network's convolution weights equal to what their makers produce.

    `push` makes the weights and writes them into the network; `pull` sends the gradients that backward left on them to the makers'
    trained tensors. A maker is a module whose forward() is the effective weight; an optional prepare() runs first, without gradient. Of its
    `places`, if it has them, it wants gradients only there.
    """

    def __init__(self, net: Net, makers: dict[str, nn.Module]):
        convs = dict(net.convs())
        self.net, self.makers = net, makers
        self.pairs = [(convs[name], maker) for name, maker in makers.items()]
        self.made: list[Tensor] = []

    def push(self) -> None:
        with torch.no_grad():
            for _, maker in self.pairs:
                if callable(prepare := getattr(maker, "prepare", None)):
                    prepare()
        with torch.enable_grad():
            self.made = [maker() for _, maker in self.pairs]
        named = {conv: getattr(maker, "places", None) for conv, maker in self.pairs}
        self.net.places = {conv: places for conv, places in named.items() if places is not None}
        with torch.no_grad():
            for (conv, _), made in zip(self.pairs, self.made, strict=True):
                conv.weight.copy_(made)

    def pull(self) -> None:
        live = [(made, conv.weight.grad) for (conv, _), made in zip(self.pairs, self.made, strict=True)]
        live = [(made, grad) for made, grad in live if made.requires_grad and grad is not None]
        torch.autograd.backward([made for made, _ in live], [grad for _, grad in live])
        for conv, _ in self.pairs:
            conv.weight.grad = None
