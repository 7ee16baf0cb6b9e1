"""The data sets behind one interface: `load("cifar10", source="sample").train.batches(batch=128, seed=1, ...)`."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from methods.core.datasets import DATASETS, SOURCES, Dataset
from methods.core.errors import UserError
from methods.data import cifar, imagenet, stand_in
from methods.data.split import Pool, Split

ROOT = Path("data")


@dataclass(frozen=True, kw_only=True)
class Data:
    name: str
    source: str
    classes: int
    shape: tuple[int, int, int]
    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    train: Split
    val: Split
    test: Split
    label: str  # what a person reads
    fingerprint: str  # SHA-256 over what was loaded
    origin: str = ""  # which copy it was read from
    sha256: Mapping[str, str] = field(default_factory=dict)


def split_indices(n: int) -> tuple[np.ndarray, np.ndarray]:
    """(training, validation) positions among n training images: the paper code's 2 % split, fixed by seed 1234."""
    order = np.random.RandomState(1234).permutation(n)  # noqa: NPY002 - the official split is this legacy stream's
    held_out = n // 50
    return order[held_out:], order[:held_out]


def load(
    name: str,
    *,
    source: str = "full",
    root: Path | None = None,
    train: int | None = None,
    val: int | None = None,
    workers: int | None = None,
    size: int | None = None,
) -> Data:
    """A data set; `train` and `val` cap the splits, `size` is the side of smaller images than its own, `workers` (processes) are those that
    decode ImageNet-100."""
    facts = DATASETS.get(name)
    if facts is None:
        raise UserError(f"dataset={name!r} is unknown; allowed: {', '.join(DATASETS)}")
    if source not in SOURCES:
        raise UserError(f"data.source={source!r} is unknown; allowed: {', '.join(SOURCES)}")
    for key, cap in (("train", train), ("val", val)):
        if cap is not None and cap < 1:
            raise UserError(f"data.{key}={cap}: a cap is at least 1; leave it out for all images")
    side = facts.side({} if size in (None, facts.image) else {"size": size})
    pool = _pool(name, source, facts, root=ROOT if root is None else Path(root), side=side, workers=workers)
    train_index, val_index = (index[:cap] for index, cap in zip(split_indices(pool.count), (train, val), strict=True))
    small = "" if side == facts.image else f", at {side}x{side} pixels"
    capped = "" if train is None and val is None else f" (training on {len(train_index)}, validating on {len(val_index)})"
    identity = [name, source, side, dict(pool.sha256), len(train_index), len(val_index)]
    return Data(
        name=name,
        source=source,
        classes=facts.classes,
        shape=(3, side, side),
        mean=facts.mean,
        std=facts.std,
        train=pool.pick(train_index),
        val=pool.pick(val_index),
        test=pool.test,
        label=pool.label + small + capped,
        fingerprint=hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest(),
        origin=pool.origin,
        sha256=pool.sha256,
    )


def load_of(spec: Mapping, *, root: Path | None = None, workers: int | None = None) -> Data:
    """The data that a Run names in `dataset` and `data`: what it is trained on, and what its network is evaluated on."""
    settings = spec["data"]
    caps = {key: settings.get(key) for key in ("train", "val", "size")}
    return load(spec["dataset"], source=settings["source"], root=root, workers=workers, **caps)


def _pool(name: str, source: str, facts: Dataset, *, root: Path, side: int, workers: int | None) -> Pool:
    if source == "stand-in":
        return stand_in.pool(name, title=facts.title, classes=facts.classes, image=facts.image, side=side)
    if source == "sample":
        if name != "cifar10":
            raise UserError(f"data.source='sample' exists for cifar10 only; allowed for {name}: full, stand-in")
        return cifar.sample_pool(side)
    if name == "imagenet100":
        return imagenet.pool(root, size=side, workers=workers)
    return cifar.pool(name, title=facts.title, root=root, side=side)
