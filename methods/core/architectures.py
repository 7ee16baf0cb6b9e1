"""Residual networks of the paper as shapes and counts: blocks, layers, weights, multiplications. No tensors.

The one description that networks are built from (methods/networks/resnet.py) and that planning, cost and the paper's closed forms count.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from methods.core.errors import UserError

FULL = (64, 128, 256, 512)
RN18, RN34 = (2, 2, 2, 2), (3, 4, 6, 3)
STEMS = ("cifar", "imagenet")


@dataclass(frozen=True, kw_only=True)
class Arch:
    """Block kind, blocks per stage, channels per stage (the stem has the channels of the first stage)."""

    blocks: tuple[int, ...]
    channels: tuple[int, ...] = FULL
    bottleneck: bool = False


ARCHS = {
    "rn18": Arch(blocks=RN18),
    "rn34": Arch(blocks=RN34),
    "rn50": Arch(blocks=RN34, bottleneck=True),
    # Dense networks of about 1 % of the parameters; the suffix names the pruning strategy whose layer sizes they imitate.
    "small_rn34_p00": Arch(blocks=RN34, channels=(26, 26, 26, 26)),
    "small_rn34_p01": Arch(blocks=RN34, channels=(23, 25, 27, 29)),
    "small_rn34_p05": Arch(blocks=RN34, channels=(14, 20, 29, 40)),
    "small_rn34_p10": Arch(blocks=RN34, channels=(6, 13, 26, 51)),
    "small_rn18_p01": Arch(blocks=RN18, channels=(23, 25, 27, 29)),
    "small_rn18_p10": Arch(blocks=RN18, channels=(6, 13, 26, 51)),
    "small_rn50_p01": Arch(blocks=RN34, channels=(23, 25, 27, 31), bottleneck=True),
    "small_rn50_p10": Arch(blocks=RN34, channels=(7, 13, 26, 51), bottleneck=True),
}


def shape_of(arch: str, width: float = 1.0) -> Arch:
    """An architecture at a width factor; reduced channel counts are multiples of 4 (odd ones crash some CPU kernels)."""
    if arch not in ARCHS:
        raise UserError(f"unknown architecture 'arch: {arch}'; allowed: {', '.join(ARCHS)}")
    if width == 1:
        return ARCHS[arch]
    if not width > 0:
        raise UserError(f"'width: {width}' must be a positive factor on the channel counts")
    return replace(ARCHS[arch], channels=tuple(max(4, 4 * round(c * width / 4)) for c in ARCHS[arch].channels))


@dataclass(frozen=True, kw_only=True)
class Conv:
    """A convolution: channels in and out, kernel side, stride."""

    channels_in: int
    channels_out: int
    kernel: int
    stride: int = 1


@dataclass(frozen=True, kw_only=True)
class Block:
    """A residual block: its stage (from 1), its place there (from 0), its convolutions, and the one on its shortcut, if any."""

    stage: int
    place: int
    body: tuple[Conv, ...]
    projection: Conv | None


def stem_conv(shape: Arch, stem: str) -> Conv:
    """The first convolution: 3x3, or for large images 7x7 with stride 2 (a pooling with stride 2 follows)."""
    kernel, stride = (7, 2) if stem == "imagenet" else (3, 1)
    return Conv(channels_in=3, channels_out=shape.channels[0], kernel=kernel, stride=stride)


def blocks_of(shape: Arch) -> Iterator[Block]:
    """Every block in order. Basic ones are 3x3, 3x3; bottlenecks 1x1, strided 3x3, 1x1 to four times the channels."""
    before = shape.channels[0]
    for stage, (count, width) in enumerate(zip(shape.blocks, shape.channels, strict=True), 1):
        for place in range(count):
            stride = 2 if stage > 1 and place == 0 else 1
            out = 4 * width if shape.bottleneck else width
            if shape.bottleneck:
                sides = [(before, width, 1, 1), (width, width, 3, stride), (width, out, 1, 1)]
            else:
                sides = [(before, width, 3, stride), (width, width, 3, 1)]
            body = tuple(Conv(channels_in=i, channels_out=o, kernel=k, stride=s) for i, o, k, s in sides)
            shortcut = Conv(channels_in=before, channels_out=out, kernel=1, stride=stride) if stride != 1 or before != out else None
            yield Block(stage=stage, place=place, body=body, projection=shortcut)
            before = out


def features(shape: Arch) -> int:
    """Channels that the classifier sees."""
    return shape.channels[-1] * (4 if shape.bottleneck else 1)


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


def layers(shape: Arch, *, classes: int, image: int) -> list[Layer]:
    """Stem; per block its convolutions, then its projection; classifier. Images above 32 pixels have the stem for large ones."""
    stem = "imagenet" if image > 32 else "cifar"
    first = stem_conv(shape, stem)
    size = image // first.stride
    listed = [_layer("stem", first, size)]
    size //= 2 if stem == "imagenet" else 1
    for block in blocks_of(shape):
        entry = size
        for i, conv in enumerate(block.body, 1):
            size //= conv.stride
            listed.append(_layer(f"stage{block.stage}.{block.place}.conv{i}", conv, size))
        if block.projection is not None:
            listed.append(_layer(f"stage{block.stage}.{block.place}.projection", block.projection, entry // block.projection.stride))
    return [*listed, Layer(name="classifier", channels_in=features(shape), channels_out=classes, kernel=1, size=1)]


def _layer(name: str, conv: Conv, size: int) -> Layer:
    return Layer(name=name, channels_in=conv.channels_in, channels_out=conv.channels_out, kernel=conv.kernel, size=size)


@dataclass(frozen=True, kw_only=True)
class Network:
    """The layers of a network, and what one forward pass of one image takes."""

    layers: tuple[Layer, ...]

    @cached_property
    def flops(self) -> int:
        """A multiplication and an addition per weight and output position."""
        return sum(2 * layer.weights * layer.size**2 for layer in self.layers)

    @cached_property
    def elements(self) -> int:
        """Of all layers' outputs: what batch norm and the activation go through."""
        return sum(layer.channels_out * layer.size**2 for layer in self.layers)

    @cached_property
    def weights(self) -> int:
        return sum(layer.weights for layer in self.layers)

    @cached_property
    def factor_flops(self) -> int:
        """Of making every weight from two factors of full rank (ATMC), once: out x rank times rank x inputs."""
        total = 0
        for layer in self.layers:
            inputs = layer.channels_in * layer.kernel**2
            total += 2 * layer.channels_out * min(layer.channels_out, inputs) * inputs
        return total


def network(spec: Mapping[str, Any], *, classes: int, image: int) -> Network:
    """The network of a Run on images of this side."""
    return Network(layers=tuple(layers(shape_of(spec["arch"], spec.get("width", 1)), classes=classes, image=image)))
