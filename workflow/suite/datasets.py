"""What planning must know of the three datasets, and which of their sources are at hand."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from workflow.suite.spec import get


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """Facts of one dataset; `train` counts the images that are left after the 2 % validation split, per source."""

    title: str
    eps: str
    train: Mapping[str, int] = field(default_factory=dict)
    traces: tuple[str, ...] = ()


# The radii are the paper's (caption of its main comparison). A trace is a path whose presence says that a full copy, or
# the archive it is unpacked from, lies under the data root; the data rule verifies the content.
DATASETS = {
    "cifar10": Dataset(
        title="CIFAR-10",
        eps="8/255",
        train={"full": 49000, "sample": 1960, "stand-in": 2008},
        traces=("cifar-10-batches-py", "cifar-10-python.tar.*", "decoded/cifar10.*"),
    ),
    "cifar100": Dataset(
        title="CIFAR-100",
        eps="4/255",
        train={"full": 49000, "stand-in": 2008},
        traces=("cifar-100-python", "cifar-100-python.tar.*", "decoded/cifar100.*"),
    ),
    "imagenet100": Dataset(
        title="ImageNet-100",
        eps="2/255",
        train={"full": 124156, "stand-in": 502},
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
