"""What planning must know of the three datasets, and which of their sources are at hand."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from workflow.suite.spec import get


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """Facts of one dataset; `train` counts, per source, the images that are left after the 2 % validation split."""

    title: str
    eps: str
    classes: int
    image: int
    train: Mapping[str, int] = field(default_factory=dict)
    test: Mapping[str, int] = field(default_factory=dict)
    traces: tuple[str, ...] = ()

    def counts(self, data: Mapping) -> tuple[int, int]:
        """Images that a Run with these `data` settings trains on and validates on."""
        train = self.train[data["source"]]
        return min(train, data.get("train", train)), min(train // 49, data.get("val", train))  # 98 : 2


# The radii are the paper's (caption of its main comparison). A trace is a path whose presence says that a full copy, or
# the archive it is unpacked from, lies under the data root; the data rule verifies the content.
DATASETS = {
    "cifar10": Dataset(
        title="CIFAR-10",
        eps="8/255",
        classes=10,
        image=32,
        train={"full": 49000, "sample": 1960, "stand-in": 2008},
        test={"full": 10000, "sample": 1000, "stand-in": 1024},
        traces=("cifar-10-batches-py", "cifar-10-python.tar.*", "decoded/cifar10.*"),
    ),
    "cifar100": Dataset(
        title="CIFAR-100",
        eps="4/255",
        classes=100,
        image=32,
        train={"full": 49000, "stand-in": 2008},
        test={"full": 10000, "stand-in": 1024},
        traces=("cifar-100-python", "cifar-100-python.tar.*", "decoded/cifar100.*"),
    ),
    "imagenet100": Dataset(
        title="ImageNet-100",
        eps="2/255",
        classes=100,
        image=224,
        train={"full": 124156, "stand-in": 502},
        test={"full": 5000, "stand-in": 256},
        traces=("imagenet/train/n01440764", "train/n01440764"),
    ),
}


def present(dataset: str, source: str, root: Path) -> bool:
    """Whether a source can be used without fetching anything; looks at names only, so that planning stays cheap."""
    if source == "full":
        return any(True for trace in DATASETS[dataset].traces for _ in root.glob(trace))
    return True  # the sample is shipped with the repository, a stand-in is generated


def choose(sources: str | list[str], dataset: str, root: Path) -> str:
    """The first source that is at hand; the last one where none is (its rule then fetches it or says what is missing)."""
    options = [sources] if isinstance(sources, str) else sources
    return next((source for source in options if present(dataset, source, root)), options[-1])


def steps(spec: Mapping) -> int | None:
    """Optimiser steps of a Run (the last partial batch counts), `None` where the number of images is not known."""
    known = DATASETS[spec["dataset"]].train.get(get(spec, "data.source") or "full")
    cap = get(spec, "data.train")
    images = min(count for count in (known, cap) if count) if known or cap else None
    epochs, batch = get(spec, "train.epochs"), get(spec, "train.batch")
    return None if None in (images, epochs, batch) else math.ceil(images / batch) * epochs
