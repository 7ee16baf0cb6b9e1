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
    """Stem, per block its convolutions and then its projection, classifier. Above 32 pixels with a strided 7x7 stem and a pooling."""
    channels, large, wide = network["channels"], network["image"] > 32, network.get("bottleneck", False)
    stem, size, grow = network.get("stem", channels[0]), network["image"] // (2 if large else 1), 4 if wide else 1
    found, before = [_layer("stem", 3, stem, 7 if large else 3, size)], stem
    size //= 2 if large else 1
    for stage, (blocks, width) in enumerate(zip(network["blocks"], channels, strict=True), 1):
        for block in range(blocks):
            entry, strided = size, stage > 1 and block == 0
            size //= 2 if strided else 1
            name, out = f"stage{stage}.{block}", grow * width
            body = [(before, width, 1, entry), (width, width, 3, size), (width, out, 1, size)] if wide else []
            body = body or [(before, width, 3, size), (width, width, 3, size)]
            found += [_layer(f"{name}.conv{i}", *shape) for i, shape in enumerate(body, 1)]
            if strided or before != out:
                found.append(_layer(f"{name}.projection", before, out, 1, size))
            before = out
    return [*found, _layer("classifier", before, network["classes"], 1, 1)]


def _layer(name: str, channels_in: int, channels_out: int, kernel: int, size: int) -> Layer:
    return Layer(name=name, channels_in=channels_in, channels_out=channels_out, kernel=kernel, size=size)


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
