"""One split of a data set: labels, and batches of images in [0, 1] whose order and augmentation are reproducible.

The order of an epoch depends on (seed, epoch) alone and each random draw on a key of its own, so that training resumed
in the middle of an epoch sees exactly the batches it would have seen.

Short epochs, of some of the images, are consecutive parts of one shuffle of all of them; when less than an epoch is left of it, the next
shuffle begins. Where the number of images is a multiple of an epoch's, every image is therefore seen equally often; else those left over,
other ones each time, wait for the next shuffle.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from methods.data.augment import AUGMENTS
from methods.data.transfer import sent


class Batch(NamedTuple):
    x: Tensor  # float32 in [0, 1], NCHW
    y: Tensor  # int64
    index: Tensor  # int64: position in the split, the same for a sample in every epoch


def generator(seed: int, *numbers: int | str, device: str | torch.device = "cpu") -> torch.Generator:
    """A generator for the stream named (seed, *numbers); streams of different names are unrelated."""
    digest = hashlib.sha256(repr((seed, *numbers)).encode()).digest()
    return torch.Generator(device).manual_seed(int.from_bytes(digest[:8], "little") >> 1)


class Split(ABC):
    """What every split can do, wherever its images come from."""

    augments: ClassVar[tuple[str, ...]]

    def __init__(self, labels: Tensor) -> None:
        self.labels = labels.to(torch.int64)

    def __len__(self) -> int:
        return len(self.labels)

    def batches(
        self,
        *,
        batch: int,
        seed: int | None = None,
        epoch: int = 0,
        images: int | None = None,
        augment: str = "none",
        device: str | torch.device = "cpu",
        start: int = 0,
        share: tuple[int, int] = (0, 1),
        drop_last: bool = False,
    ) -> Iterator[Batch]:
        """The batches of one epoch from number `start` on; without a seed in the split's own order. It has all images, or so many.

        `augment="none"` is the test transform. `share=(k, n)` gives part k of n of each batch, with the images that the whole has there.
        """
        if augment not in self.augments:
            raise ValueError(f"augment={augment!r}; this data set has {', '.join(self.augments)}")
        if augment != "none" and seed is None:
            raise ValueError(f"augment={augment!r} draws random numbers and needs a seed")
        if batch < 1 or start < 0:
            raise ValueError(f"batch={batch}, start={start}; a batch has at least one image and start is not negative")
        if images is not None and not 1 <= images <= len(self):
            raise ValueError(f"images={images}; an epoch has at least one image and at most all {len(self)}")
        count = len(self) if images is None else images
        stop = count - count % batch if drop_last else count
        order = self._order(seed, epoch, count)
        chunks = [(number, order[number * batch : (number + 1) * batch]) for number in range(-(-stop // batch))]
        return self._read(chunks[start:], (seed, epoch), augment, torch.device(device), share)

    def _order(self, seed: int | None, epoch: int, count: int) -> Tensor:
        """Positions of the `count` images of an epoch."""
        epochs_of_shuffle = len(self) // count if count else 1
        shuffle, part = divmod(epoch, epochs_of_shuffle)
        order = torch.arange(len(self))
        if seed is not None:
            order = torch.randperm(len(self), generator=generator(seed, "order", shuffle))
        return order[part * count : (part + 1) * count]

    @abstractmethod
    def _read(
        self,
        chunks: list[tuple[int, Tensor]],
        stream: tuple[int | None, int],
        augment: str,
        device: torch.device,
        share: tuple[int, int],
    ) -> Iterator[Batch]:
        """The share of the numbered chunks of indices as batches on the device; `stream` is (seed, epoch)."""

    @abstractmethod
    def gather(self, index: Tensor, device: str | torch.device = "cpu") -> Tensor:
        """Un-augmented float images in [0, 1] at these positions of the split."""


class TensorSplit(Split):
    """A split that fits in memory as one uint8 tensor; made when first looked at, then kept once per device."""

    augments = ("none", *AUGMENTS)

    def __init__(self, labels: Tensor, make: Callable[[], Tensor]) -> None:
        super().__init__(labels)
        self._make = make
        self._images: dict[torch.device, Tensor] = {}

    def images(self, device: str | torch.device = "cpu") -> Tensor:
        """All images, uint8, NCHW, un-augmented."""
        device = torch.device(device)
        if device not in self._images:
            made = next(iter(self._images.values())) if self._images else self._make()
            self._images[device] = made.to(device)
        return self._images[device]

    def gather(self, index: Tensor, device: str | torch.device = "cpu") -> Tensor:
        return unit(self.images(device)[index.to(device)])

    def _read(
        self,
        chunks: list[tuple[int, Tensor]],
        stream: tuple[int | None, int],
        augment: str,
        device: torch.device,
        share: tuple[int, int],
    ) -> Iterator[Batch]:
        images, (seed, epoch) = self.images(device), stream
        for number, index in chunks:
            y, index = sent(self.labels[index], device), sent(index, device)
            x = images[index]
            if augment != "none":
                x = AUGMENTS[augment](x, generator(seed, "augment", epoch, number))
            here = within(len(index), share)  # after the draws, which are the whole batch's
            yield Batch(unit(x[here]), y[here], index[here])


@dataclass(frozen=True, kw_only=True)
class Pool:
    """What a source offers: training images to pick splits from, and the test split."""

    count: int
    pick: Callable[[np.ndarray], Split]
    test: Split
    label: str  # what a person reads
    origin: str  # which copy it was read from
    sha256: Mapping[str, str]


def within(total: int, share: tuple[int, int]) -> slice:
    """Where part k of n of `total` images lies; sizes differ by at most one."""
    k, n = share
    return slice(total * k // n, total * (k + 1) // n)


def unit(images: Tensor) -> Tensor:
    """uint8 images as float32 in [0, 1]."""
    return images.float().div_(255)
