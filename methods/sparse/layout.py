"""How feature maps lie in memory: [block][row][channel][column][16], sixteen images innermost.

A vector holds one position of one channel for the sixteen images of a block. A kept weight is then one multiply-add of whole vectors per
position, wherever it sits in its kernel: nothing is gathered, and what the other weights do does not matter. Images never mix except in
sums over the batch, so that a batch of any size is padded with copies of its last image and only the sums look at how many are real.
A row of all channels is contiguous, because a kernel works row by row (convolve.py).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from methods.sparse.lanes import LANES

ALIGNMENT = 64  # bytes: a vector does not cross cache lines
LARGE = 1 << 18  # bytes


def aligned(count: int, kind: type = np.float32) -> np.ndarray:
    """An uninitialised flat array whose vectors are aligned."""
    size = np.dtype(kind).itemsize
    memory = np.empty(count + ALIGNMENT // size, kind)
    skip = -memory.ctypes.data % ALIGNMENT // size
    return memory[skip : skip + count]


@dataclass(frozen=True)
class Extent:
    """Size of a feature map of a batch."""

    images: int
    channels: int
    height: int
    width: int

    @property
    def blocks(self) -> int:
        return -(-self.images // LANES)

    @property
    def vectors(self) -> int:
        return self.blocks * self.height * self.channels * self.width

    @property
    def floats(self) -> int:
        return self.vectors * LANES

    @property
    def past(self) -> bool:
        """Whether the map is too large to be at hand when the next layer reads it: it is then written to memory past the caches."""
        return 4 * self.floats > LARGE


def pack(images: Tensor, target: np.ndarray) -> None:
    """Write a tensor [n, channels, height, width] to an array in this layout."""
    n, channels, height, width = images.shape
    blocks = -(-n // LANES)
    lanes = torch.from_numpy(target).view(blocks, height, channels, width, LANES).permute(0, 4, 2, 1, 3)
    whole = n // LANES
    lanes[:whole].copy_(images[: whole * LANES].reshape(whole, LANES, channels, height, width))
    if whole < blocks:
        rest = images[whole * LANES :]
        lanes[whole, : len(rest)].copy_(rest)
        lanes[whole, len(rest) :].copy_(images[-1:])


def unpack(values: np.ndarray, extent: Extent) -> Tensor:
    """The tensor [n, channels, height, width] of a map in this layout: a copy."""
    e = extent
    lanes = torch.from_numpy(values).view(e.blocks, e.height, e.channels, e.width, LANES)
    return lanes.permute(0, 4, 2, 1, 3).reshape(e.blocks * LANES, e.channels, e.height, e.width)[: e.images].contiguous()


class Pool:
    """Memory that is used again: fresh memory costs as much as a small layer, page by page."""

    def __init__(self):
        self.free: dict[tuple[int, type], list[tuple[np.ndarray, int]]] = defaultdict(list)

    def take(self, count: int, kind: type = np.float32) -> Buffer:
        shelf = self.free[count, kind]
        array, place = shelf.pop() if shelf else _placed(aligned(count, kind))
        return Buffer(array, place, shelf)


class Buffer:
    """A flat array and its address; goes back to the shelf of its pool when nobody holds it any more."""

    __slots__ = ("array", "address", "shelf")

    def __init__(self, array: np.ndarray, address: int, shelf: list[tuple[np.ndarray, int]]):
        self.array, self.address, self.shelf = array, address, shelf

    def __del__(self):
        self.shelf.append((self.array, self.address))


def _placed(array: np.ndarray) -> tuple[np.ndarray, int]:
    return array, array.ctypes.data


def address(buffer: Buffer | None) -> int:
    """Where a kernel finds a buffer; 0 stands for none."""
    return 0 if buffer is None else buffer.address
