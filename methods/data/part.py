"""The part of a batch that one of several processes has (methods.distributed.world), and random numbers for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor


class Part(NamedTuple):
    """The images from `start` to `stop` of a batch of `total`: those of this process."""

    start: int
    stop: int
    total: int

    @property
    def count(self) -> int:
        return self.stop - self.start

    def of(self, whole: Tensor) -> Tensor:
        """The part of a tensor with one entry per image of the batch."""
        return whole[self.start : self.stop]

    def whole(self, own: Tensor) -> Tensor:
        """The tensor of the whole batch, from what each process has for its part."""
        batch = own.new_zeros((self.total, *own.shape[1:]))
        batch[self.start : self.stop] = own
        dist.all_reduce(batch)
        return batch


class PartDraws(torch.Generator):
    """A generator that knows for which part of a batch it is asked; see `drawn`."""

    part: Part


def part_of(generator: torch.Generator) -> Part | None:
    """The part that a generator draws for; none where one process has the whole batch."""
    return getattr(generator, "part", None)


def drawn(generator: torch.Generator, count: int, draw: Callable[[int], Tensor]) -> Tensor:
    """`draw(n)`, random numbers for n images, of the `count` images here: drawn for the whole batch where they are a part of one."""
    part = part_of(generator)
    return draw(count) if part is None else part.of(draw(part.total))
