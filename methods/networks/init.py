"""Initial weights and scores of a convolution: real numbers from an explicit generator, signs by the law of methods.core.signs."""

from __future__ import annotations

from math import sqrt

import torch
from torch import Tensor

from methods.core import signs
from methods.core.errors import UserError

SIGNED = ("binary", "signed_kc", "signed_constant", "xavier_constant")
WEIGHTS = (
    *SIGNED,
    *("unsigned_constant", "kaiming_normal", "kaiming_normal_fan_out", "kaiming_uniform", "xavier_normal", "default"),
)
SCORES = ("uniform", "fan_uniform")


def fan_in(shape: torch.Size) -> int:
    return shape[1] * shape[2] * shape[3]


def fan_out(shape: torch.Size) -> int:
    return shape[0] * shape[2] * shape[3]


def bias(shape: torch.Size, generator: torch.Generator) -> Tensor:
    """Bias of a layer whose weight has this shape, as PyTorch draws it: U(+-1/sqrt(fan_in))."""
    return (torch.rand(shape[0], generator=generator) * 2 - 1) / sqrt(fan_in(shape))


def random_signs(seed: int, layer: str, shape: torch.Size) -> Tensor:
    """+-1 in the shape of a layer, by the law of methods.core.signs."""
    return torch.from_numpy(signs.signs(seed, layer, shape.numel())).float().view(shape)


def weights(
    kind: str, shape: torch.Size, generator: torch.Generator, *, keep: float = 1.0, stream: tuple[int, str] | None = None
) -> Tensor:
    """Weights of one layer; `stream`, the seed and the layer's name, says which signs the kinds in SIGNED have.

    binary: +-1. signed_kc: +-sqrt(2 / (fan_in * keep)), keep being the global kept fraction in every layer (the paper's text says the
    layer's own, its code does this). signed_constant, unsigned_constant, xavier_constant, kaiming_uniform, xavier_normal: those of RST's
    code, with gain sqrt(2) and unscaled. default: PyTorch's, U(+-1/sqrt(fan_in)).
    """
    fan = fan_in(shape)
    xavier = sqrt(2 / (fan + fan_out(shape)))
    if kind == "kaiming_normal":
        return torch.randn(shape, generator=generator) * sqrt(2 / fan)
    if kind == "kaiming_normal_fan_out":
        return torch.randn(shape, generator=generator) * sqrt(2 / fan_out(shape))
    if kind == "xavier_normal":
        return torch.randn(shape, generator=generator) * xavier
    if kind == "kaiming_uniform":
        return (torch.rand(shape, generator=generator) * 2 - 1) * sqrt(6 / fan)
    if kind == "default":
        return (torch.rand(shape, generator=generator) * 2 - 1) / sqrt(fan)
    if kind == "unsigned_constant":
        return torch.full(shape, sqrt(2 / fan))
    sizes = {"binary": 1.0, "signed_kc": sqrt(2 / (fan * keep)), "signed_constant": sqrt(2 / fan), "xavier_constant": xavier}
    if kind not in sizes:
        raise UserError(f"unknown 'init.weights: {kind}'; allowed: {', '.join(WEIGHTS)}")
    if stream is None:
        raise ValueError(f"weights of kind {kind} need a stream (seed, layer)")
    return random_signs(*stream, shape) * sizes[kind]


def scores(kind: str, shape: torch.Size, generator: torch.Generator, *, a: float) -> Tensor:
    """Scores of one layer: U(-a, a), or U(-a, a) / sqrt(fan_in)."""
    draw = (torch.rand(shape, generator=generator) * 2 - 1) * a
    if kind == "uniform":
        return draw
    if kind == "fan_uniform":
        return draw / sqrt(fan_in(shape))
    raise UserError(f"unknown 'init.scores: {kind}'; allowed: {', '.join(SCORES)}")
