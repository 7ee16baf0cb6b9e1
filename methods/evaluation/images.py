"""Test images as an evaluation takes them: block after block, checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from methods.core.errors import UserError

if TYPE_CHECKING:
    from methods.data.split import Split

Block = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Images:
    """So many test images of so many pixels a side; `block(number, size)` are the images and labels of a block of that size."""

    count: int
    side: int
    block: Callable[[int, int], Block]

    def fetch(self, number: int, size: int, total: int) -> Block:
        """A block of an evaluation of the first `total` images: the last one may be short."""
        x, y = self.block(number, size)
        left = min(size, total - number * size)
        x, y = x[:left], y[:left]
        check_images(x, y, number * size)
        return x, y


def from_split(split: Split) -> Images:
    """The images of a data set's split."""

    def block(number: int, size: int) -> Block:
        batch = next(iter(split.batches(batch=size, start=number)))
        return batch.x, batch.y

    return Images(len(split), split.gather(torch.tensor([0])).shape[-1], block)


def from_arrays(x: Any, y: Any) -> Images:
    """Images and labels in memory: tensors, or numpy arrays (whose double precision becomes single)."""
    x = x if isinstance(x, Tensor) else _single(torch.as_tensor(x))
    y = torch.as_tensor(y)
    check_images(x, y, 0)
    labels = y.long()

    def block(number: int, size: int) -> Block:
        rows = slice(number * size, (number + 1) * size)
        return x[rows], labels[rows]

    return Images(len(x), x.shape[-1], block)


def _single(x: Tensor) -> Tensor:
    return x.float() if x.is_floating_point() else x


def check_images(x: Tensor, y: Tensor, start: int) -> None:
    """Images are float [n, channels, height, width] in [0, 1], labels n whole numbers; `start` is the position of the first one."""
    if x.ndim != 4 or not x.is_floating_point():
        raise UserError(f"images x must be floats of shape [n, channels, height, width], not {x.dtype} of shape {tuple(x.shape)}")
    if y.shape != (len(x),) or y.is_floating_point() or y.dtype == torch.bool:
        raise UserError(f"labels y must be {len(x)} whole numbers, one per image, not {y.dtype} of shape {tuple(y.shape)}")
    outside = (~((x >= 0) & (x <= 1))).flatten(1).any(1).nonzero()
    if len(outside):
        bad = start + int(outside[0, 0])
        raise UserError(f"image x[{bad}] has values outside of [0, 1] (or NaN); normalisation belongs inside the network")
