"""A convolution of a network with the batch norm that follows it, and its kept weights as they are at the moment."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from methods.networks.resnet import Net
from methods.sparse.geometry import Shape
from methods.sparse.lists import Kept


class Layer:
    """Finds the kept weights again when the convolution's weight was written to (as autograd counts it: not through `.data`)."""

    def __init__(self, conv: nn.Conv2d, norm: nn.BatchNorm2d | None):
        self.conv, self.norm = conv, norm
        self.seen: tuple[int, int] | None = None
        self.shapes: dict[tuple[int, int], Shape] = {}

    @property
    def kept(self) -> Kept:
        weight = self.conv.weight
        now = (weight.data_ptr(), weight._version)
        if now != self.seen:
            self._kept, self.seen = Kept(weight.detach().numpy()), now
        return self._kept

    def shape(self, height: int, width: int) -> Shape:
        """On maps of this size."""
        if (height, width) not in self.shapes:
            conv = self.conv
            sizes = (conv.in_channels, conv.out_channels, conv.kernel_size[0], conv.stride[0], height, width)
            self.shapes[height, width] = Shape(*sizes)
        return self.shapes[height, width]


@dataclass(frozen=True)
class Block:
    body: list[Layer]
    projection: Layer | None


class Layers:
    """Every layer of a network."""

    def __init__(self, net: Net):
        self.stem = Layer(net.stem, net.stem_norm)
        self.blocks = [
            Block(
                [Layer(conv, norm) for conv, norm in zip(block.convs, block.norms, strict=True)],
                None if block.projection is None else Layer(block.projection, block.projection_norm),
            )
            for block in net.blocks
        ]
        self.head = Layer(net.head, net.last_norm)
