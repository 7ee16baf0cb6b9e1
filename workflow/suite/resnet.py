"""The paper's residual networks as counts: layers, weights, and how adaptive pruning shares a budget among them. No tensors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Layer:
    """A linear map: channels in and out, kernel side, side of its output map; all but the classifier are followed by batch norm."""

    name: str
    channels_in: int
    channels_out: int
    kernel: int
    size: int

    @property
    def weights(self) -> int:
        return self.channels_in * self.channels_out * self.kernel**2


def layers(network: Mapping) -> list[Layer]:
    """Stem, per block its two 3x3 convolutions and then its projection, classifier: the CIFAR form with basic blocks."""
    channels, size = network["channels"], network["image"]
    stem = network.get("stem", channels[0])
    found, before = [Layer(name="stem", channels_in=3, channels_out=stem, kernel=3, size=size)], stem
    for stage, (blocks, width) in enumerate(zip(network["blocks"], channels, strict=True), 1):
        for block in range(blocks):
            strided = stage > 1 and block == 0
            size //= 2 if strided else 1
            name = f"stage{stage}.{block}"
            found.append(Layer(name=f"{name}.conv1", channels_in=before, channels_out=width, kernel=3, size=size))
            found.append(Layer(name=f"{name}.conv2", channels_in=width, channels_out=width, kernel=3, size=size))
            if strided or before != width:
                found.append(Layer(name=f"{name}.projection", channels_in=before, channels_out=width, kernel=1, size=size))
            before = width
    return [*found, Layer(name="classifier", channels_in=before, channels_out=network["classes"], kernel=1, size=1)]


def parameters(network: Mapping, *, affine: bool) -> int:
    """Weights, with batch norm's scales and shifts where it is affine; the classifier has no bias."""
    found = layers(network)
    return sum(layer.weights for layer in found) + affine * sum(2 * layer.channels_out for layer in found[:-1])


def share(sizes: Sequence[int], *, sparsity: float, p: float, capped: bool = True) -> list[float]:
    """Kept weights per layer, not rounded: proportional to size^p, and no layer keeps more than it has when `capped`.

    The paper's equation has no cap, yet at r = 0.99 and p = 0.1 it asks conv1 for twice the weights it has.
    """
    budget, whole = (1 - sparsity) * sum(sizes), set()
    while True:
        free = [i for i in range(len(sizes)) if i not in whole]
        constant = (budget - sum(sizes[i] for i in whole)) / sum(sizes[i] ** p for i in free) if free else 0.0
        full = {i for i in free if constant * sizes[i] ** p > sizes[i]} if capped else set()
        if not full:
            return [float(size) if i in whole else constant * size**p for i, size in enumerate(sizes)]
        whole |= full


def widths(network: Mapping, *, sparsity: float, p: float, capped: bool = True) -> list[float]:
    """Channels per stage of a dense network whose layers are as large as the pruned ones: sqrt(kept / 9) of the equal-channel layers."""
    found = layers(network)
    kept = share([layer.weights for layer in found], sparsity=sparsity, p=p, capped=capped)
    by_name = {layer.name: m for layer, m in zip(found, kept, strict=True)}
    return [(by_name[f"stage{stage}.0.conv2"] / 9) ** 0.5 for stage in range(1, len(network["blocks"]) + 1)]


def wide_weights(*, depth: int, widen: int, classes: int) -> int:
    """Weights of the standard WideResNet of this depth and widening (Zagoruyko and Komodakis, 2016)."""
    before, total = 16, 3 * 16 * 9
    for width in (16 * widen, 32 * widen, 64 * widen):
        for block in range((depth - 4) // 6):
            total += before * width * 9 + width * width * 9 + (before * width if block == 0 else 0)
            before = width
    return total + before * classes
