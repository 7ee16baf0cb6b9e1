"""The facts of the three data sets: sizes, classes, radii, normalisation, and what a local copy of each looks like.

Normalisation constants are those of the paper's code; they are applied inside the network, so images stay in [0, 1].
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from methods.core.errors import UserError


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """Facts of one data set: `image` is its side, `sizes` the smaller ones that a Run may ask for (`data.size`), `train` the images left
    after the 2 % validation split, per source."""

    title: str
    eps: str
    classes: int
    image: int
    sizes: tuple[int, ...]
    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    train: Mapping[str, int] = field(default_factory=dict)
    test: Mapping[str, int] = field(default_factory=dict)
    traces: tuple[str, ...] = ()

    def counts(self, data: Mapping[str, Any]) -> tuple[int, int]:
        """Images that a Run with these `data` settings trains on and validates on."""
        train = self.train[data["source"]]
        return min(train, data.get("train", train)), min(train // 49, data.get("val", train))  # 98 : 2

    def side(self, data: Mapping[str, Any]) -> int:
        """Side of the images that a Run with these `data` settings sees. The whole size is not named: it would name a Run twice."""
        if "size" not in data:
            return self.image
        if data["size"] not in self.sizes:
            allowed = ", ".join(map(str, self.sizes))
            raise UserError(f"data.size={data['size']}: allowed for {self.title}: {allowed}; leave it out for {self.image}")
        return int(data["size"])


def epoch_images(train: Mapping[str, Any], samples: int) -> int:
    """Training images that an epoch sees under these `train` settings: all, or at most 'train.epoch_images' of them."""
    return min(samples, int(train.get("epoch_images", samples)))


def epoch_steps(train: Mapping[str, Any], samples: int) -> int:
    """Optimiser steps of an epoch; the last batch may be smaller."""
    return math.ceil(epoch_images(train, samples) / int(train["batch"]))


SOURCES = ("full", "sample", "stand-in")

# The radii are the paper's (caption of its main comparison). A trace is a path whose presence says that a full copy, or
# the archive it is unpacked from, lies under the data root; the data rule verifies the content.
DATASETS = {
    "cifar10": Dataset(
        title="CIFAR-10",
        eps="8/255",
        classes=10,
        image=32,
        sizes=(16,),
        mean=(0.4914, 0.4822, 0.4465),
        std=(0.2023, 0.1994, 0.2010),
        train={"full": 49000, "sample": 1960, "stand-in": 2008},
        test={"full": 10000, "sample": 1000, "stand-in": 1024},
        traces=("cifar-10-batches-py", "cifar-10-python.tar.*", "decoded/cifar10.*"),
    ),
    "cifar100": Dataset(
        title="CIFAR-100",
        eps="4/255",
        classes=100,
        image=32,
        sizes=(16,),
        mean=(0.5071, 0.4867, 0.4408),
        std=(0.2675, 0.2565, 0.2761),
        train={"full": 49000, "stand-in": 2008},
        test={"full": 10000, "stand-in": 1024},
        traces=("cifar-100-python", "cifar-100-python.tar.*", "decoded/cifar100.*"),
    ),
    "imagenet100": Dataset(
        title="ImageNet-100",
        eps="2/255",
        classes=100,
        image=224,
        sizes=tuple(range(64, 224, 32)),
        mean=(0.485, 0.456, 0.406),
        std=(0.229, 0.224, 0.225),
        train={"full": 124156, "stand-in": 502},
        test={"full": 5000, "stand-in": 256},
        traces=("imagenet/train/n01440764", "train/n01440764"),
    ),
}
