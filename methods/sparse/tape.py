"""What a forward pass leaves for its backward pass."""

from __future__ import annotations

from dataclasses import dataclass, field

from methods.sparse.geometry import Shape
from methods.sparse.layer import Layer
from methods.sparse.layout import Buffer, Extent, address
from methods.sparse.lists import Kept
from methods.sparse.norm import Factors, Normed
from methods.sparse.source import Source


@dataclass
class Map:
    """A feature map as its readers see it: factors on stored values, then ReLU. `origins`: the layers whose raw outputs these are."""

    extent: Extent
    values: Buffer | None
    factors: Factors
    other: Buffer | None = None
    relu: bool = False
    bits: Buffer | None = None
    copy: Buffer | None = None
    origins: tuple[Applied, ...] = ()

    def source(self, *, write: bool = False) -> Source:
        """How a kernel reads it; its first reader also writes the bits and the copy."""
        f, plain = self.factors, self.factors.other_scale is None
        factors = (f.scale.ctypes.data, f.shift.ctypes.data, address(self.other), 0 if plain else f.other_scale.ctypes.data)
        written = (address(self.bits), address(self.copy)) if write else (0, 0)
        return Source(address(self.values), *factors, self.relu, *written, self.extent.past)

    def release(self) -> None:
        """All but the bits is not needed any more."""
        self.values = self.other = self.copy = None


@dataclass
class Applied:
    """A layer in one forward pass: what it read, its raw outputs, its batch norm."""

    layer: Layer
    kept: Kept
    shape: Shape
    read: Map
    extent: Extent
    values: Buffer | None
    normed: Normed


@dataclass
class Pooled:
    """The stem's output before its pooling, and which positions were the maxima."""

    read: Map
    winners: Buffer | None


@dataclass
class BlockTape:
    """A residual block in one forward pass."""

    body: list[Applied]
    projection: Applied | None


@dataclass
class Tape:
    """A forward pass."""

    stem: Applied
    pooled: Pooled | None = None
    blocks: list[BlockTape] = field(default_factory=list)
    last: Map | None = None  # of the last block
    head: Applied | None = None
