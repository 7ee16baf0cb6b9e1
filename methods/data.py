"""The data sets behind one interface: `load("cifar10", source="sample").train.batches(batch=128, seed=1, ...)`.

Normalisation constants are those of the paper's code and are applied inside the model, so images stay in [0, 1].
As a command, verifies a data set and writes a small manifest of it: `python -m methods.data --help`.
"""

import argparse
import hashlib
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from methods import atomic, cifar, imagenet, standin
from methods.errors import UserError
from methods.split import Batch, Pool, Split, generator

__all__ = ["FACTS", "SOURCES", "Batch", "Data", "Split", "generator", "load", "main", "split_indices"]

ROOT = Path("data")
SOURCES = ("full", "sample", "stand-in")


@dataclass(frozen=True, kw_only=True)
class Facts:
    title: str
    classes: int
    size: int
    mean: tuple[float, float, float]
    std: tuple[float, float, float]


FACTS = {
    "cifar10": Facts(title="CIFAR-10", classes=10, size=32, mean=(0.4914, 0.4822, 0.4465), std=(0.2023, 0.1994, 0.2010)),
    "cifar100": Facts(title="CIFAR-100", classes=100, size=32, mean=(0.5071, 0.4867, 0.4408), std=(0.2675, 0.2565, 0.2761)),
    "imagenet100": Facts(title="ImageNet-100", classes=100, size=224, mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225)),
}


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
    image_size: int | None = None,
) -> Data:
    """A data set; `train` and `val` cap the splits, `workers` (processes) and `image_size` concern ImageNet-100."""
    facts = FACTS.get(name)
    if facts is None:
        raise UserError(f"dataset={name!r} is unknown; allowed: {', '.join(FACTS)}")
    if source not in SOURCES:
        raise UserError(f"data.source={source!r} is unknown; allowed: {', '.join(SOURCES)}")
    for key, cap in (("train", train), ("val", val)):
        if cap is not None and cap < 1:
            raise UserError(f"data.{key}={cap}: a cap is at least 1; leave it out for all images")
    size = facts.size if image_size is None else image_size
    if size < 8 or (name != "imagenet100" and size != facts.size):
        allowed = "at least 8" if name == "imagenet100" else str(facts.size)
        raise UserError(f"image_size={size}: allowed for {name}: {allowed}")
    pool = _pool(name, source, facts, root=ROOT if root is None else Path(root), size=size, workers=workers)
    train_index, val_index = (index[:cap] for index, cap in zip(split_indices(pool.count), (train, val), strict=True))
    capped = "" if train is None and val is None else f" (training on {len(train_index)}, validating on {len(val_index)})"
    identity = [name, source, size, dict(pool.sha256), len(train_index), len(val_index)]
    return Data(
        name=name,
        source=source,
        classes=facts.classes,
        shape=(3, size, size),
        mean=facts.mean,
        std=facts.std,
        train=pool.pick(train_index),
        val=pool.pick(val_index),
        test=pool.test,
        label=pool.label + capped,
        fingerprint=hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest(),
        origin=pool.origin,
        sha256=pool.sha256,
    )


def _pool(name: str, source: str, facts: Facts, *, root: Path, size: int, workers: int | None) -> Pool:
    if source == "stand-in":
        return standin.pool(name, title=facts.title, classes=facts.classes, size=size)
    if source == "sample":
        if name != "cifar10":
            raise UserError(f"data.source='sample' exists for cifar10 only; allowed for {name}: full, stand-in")
        return cifar.sample_pool()
    if name == "imagenet100":
        return imagenet.pool(root, size=size, workers=workers)
    return cifar.pool(name, title=facts.title, root=root)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m methods.data",
        description="Verify a data set (downloading it where that is possible) and write a small manifest of it.",
    )
    parser.add_argument("--dataset", required=True, help=f"one of: {', '.join(FACTS)}")
    parser.add_argument(
        "--source",
        default="full",
        help="full (default): the whole data set; sample: the part of CIFAR-10 shipped with the project; "
        "stand-in: synthetic images of the same shape",
    )
    parser.add_argument("--root", type=Path, default=ROOT, help="folder of the real data sets (default: data)")
    parser.add_argument("--out", type=Path, required=True, help="the manifest to write, JSON")
    options = parser.parse_args(argv)
    try:
        data = load(options.dataset, source=options.source, root=options.root)
        manifest = {
            "dataset": data.name,
            "source": data.source,
            "label": data.label,
            "classes": data.classes,
            "shape": list(data.shape),
            "counts": {part: len(getattr(data, part)) for part in ("train", "val", "test")},
            "sha256s": dict(data.sha256),
            "fingerprint": data.fingerprint,
            "origin": data.origin,
        }
        atomic.write_json(options.out, manifest)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"error: {error.filename or options.out}: {error.strerror or error}", file=sys.stderr)
        return 2
    print(f"{data.label} -> {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
