"""Counts of the paper's residual networks, given as the paper prints them: parameters, and widths of the small networks."""

from collections.abc import Mapping
from typing import Any

from methods.core import architectures
from methods.core.allocation import exact_shares
from methods.core.architectures import Arch, Layer


def layers(network: Mapping[str, Any]) -> list[Layer]:
    """The layers of a printed network: channels and blocks per stage, classes, side of its images."""
    shape = Arch(blocks=tuple(network["blocks"]), channels=tuple(network["channels"]))
    return architectures.layers(shape, classes=network["classes"], image=network["image"])


def parameters(network: Mapping, *, affine: bool) -> int:
    """Weights, with batch norm's scales and shifts where it is affine; the classifier has no bias."""
    listed = layers(network)
    return sum(layer.weights for layer in listed) + affine * sum(2 * layer.channels_out for layer in listed[:-1])


def widths(network: Mapping, *, sparsity: float, p: float, capped: bool = True) -> list[float]:
    """Channels per stage of a dense network whose layers are as large as the pruned ones: sqrt(kept / 9) of the equal-channel layers."""
    listed = layers(network)
    kept = exact_shares([layer.weights for layer in listed], sparsity=sparsity, p=p, capped=capped)
    by_name = {layer.name: m for layer, m in zip(listed, kept, strict=True)}
    return [(by_name[f"stage{stage}.0.conv2"] / 9) ** 0.5 for stage in range(1, len(network["blocks"]) + 1)]


def wide_weights(*, depth: int, widen: int, classes: int) -> int:
    """Weights of the standard WideResNet of this depth and widening (Zagoruyko and Komodakis, 2016)."""
    before, total = 16, 3 * 16 * 9
    for width in (16 * widen, 32 * widen, 64 * widen):
        for block in range((depth - 4) // 6):
            total += before * width * 9 + width * width * 9 + (before * width if block == 0 else 0)
            before = width
    return total + before * classes
