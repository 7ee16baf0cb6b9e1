"""ImageNet-100 from a folder of photographs: train/<wnid>/*, val/<wnid>/*, decoded by worker processes.

The classes are the first 100 of ImageNet-1k in sorted order (as in Continuum's ImageNet100, which the paper follows);
a label is the position in that list.
"""

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from methods.errors import UserError
from methods.split import Batch, Split, generator, unit
from methods.torchvision_shim import torchvision

WNIDS = tuple((Path(__file__).parent / "imagenet100_wnids.txt").read_text().split())
SUFFIXES = {".jpeg", ".jpg", ".png", ".bmp", ".webp"}
Sample = tuple[Path, int]


@dataclass(frozen=True, kw_only=True)
class Listing:
    train: list[Sample]
    test: list[Sample]
    origin: str
    sha256: dict[str, str]


def listing(root: Path) -> Listing:
    """All photographs of the 100 classes under root/imagenet or root, sorted; the folder `val` is the test set."""
    home = next((path for path in (root / "imagenet", root) if (path / "train").is_dir()), None)
    if home is None:
        raise UserError(
            f"{root}: no ImageNet here; expected imagenet/train/<wnid>/ and imagenet/val/<wnid>/ "
            f"(or train/ and val/ directly), e.g. imagenet/train/{WNIDS[0]}/*.JPEG"
        )
    absent = [f"{part}/{wnid}" for part in ("train", "val") for wnid in WNIDS if not (home / part / wnid).is_dir()]
    if absent:
        raise UserError(f"{home}: {len(absent)} class folders are missing: {', '.join(absent)}")
    parts = {part: _photographs(home / part) for part in ("train", "val")}
    digests = {}
    for part, samples in parts.items():
        names = "\n".join(path.relative_to(home).as_posix() for path, _ in samples)
        digests[f"{part}_files"] = hashlib.sha256(names.encode()).hexdigest()
    return Listing(train=parts["train"], test=parts["val"], origin=f"folder {home.name}", sha256=digests)


def _photographs(folder: Path) -> list[Sample]:
    samples, empty = [], []
    for label, wnid in enumerate(WNIDS):
        with os.scandir(folder / wnid) as entries:
            names = sorted(entry.name for entry in entries if Path(entry.name).suffix.lower() in SUFFIXES)
        if not names:
            empty.append(f"{folder.name}/{wnid}")
        samples += [(folder / wnid / name, label) for name in names]
    if empty:
        raise UserError(f"{folder.parent}: {len(empty)} class folders hold no photographs: {', '.join(empty)}")
    return samples


class FolderSplit(Split):
    """A split whose photographs are decoded when they are needed."""

    augments = ("none", "resized_crop_flip")

    def __init__(self, samples: list[Sample], *, size: int = 224, workers: int | None = None) -> None:
        super().__init__(torch.tensor([label for _, label in samples], dtype=torch.int64))
        self.paths = [path for path, _ in samples]
        self.size = size
        self.workers = min(8, len(os.sched_getaffinity(0))) if workers is None else workers

    def gather(self, index: Tensor, device: str | torch.device = "cpu") -> Tensor:
        photographs = _Photographs(self.paths, self.size, "none", (None, 0))
        return unit(_stack([photographs[i] for i in index.tolist()])).to(device)

    def _read(
        self, chunks: list[tuple[int, Tensor]], stream: tuple[int | None, int], augment: str, device: torch.device
    ) -> Iterator[Batch]:
        loader = DataLoader(
            _Photographs(self.paths, self.size, augment, stream),
            batch_sampler=[index.tolist() for _, index in chunks],
            num_workers=self.workers,
            collate_fn=_collate,
            pin_memory=device.type == "cuda",
            generator=torch.Generator(),  # else every epoch would take a number from the global generator
        )
        for (_, index), images in zip(chunks, loader, strict=True):
            if isinstance(images, str):
                raise UserError(images)
            yield Batch(unit(images.to(device, non_blocking=True)), self.labels[index].to(device), index.to(device))


class _Photographs(Dataset):
    """Decoded, transformed uint8 images; an unreadable file becomes a message, as workers garble exceptions."""

    def __init__(self, paths: list[Path], size: int, augment: str, stream: tuple[int | None, int]) -> None:
        transforms = torchvision().transforms
        self.paths, self.stream, self.random = paths, stream, augment != "none"
        if self.random:
            steps = [transforms.RandomResizedCrop(size), transforms.RandomHorizontalFlip()]
        else:
            steps = [transforms.Resize(size * 256 // 224), transforms.CenterCrop(size)]
        self.transform = transforms.Compose([*steps, transforms.PILToTensor()])

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Tensor | str:
        from PIL import Image

        path = self.paths[index]
        try:
            with Image.open(path) as file:
                image = file.convert("RGB")  # some photographs are greyscale or CMYK
        except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
            return f"{path}: unreadable or truncated image ({error}); replace the file"
        if not self.random:
            return self.transform(image)
        # torchvision draws from the global generator: lend it this sample's own stream.
        before = torch.default_generator.get_state()
        seed, epoch = self.stream
        torch.default_generator.set_state(generator(seed, "augment", epoch, index).get_state())
        try:
            return self.transform(image)
        finally:
            torch.default_generator.set_state(before)


def _collate(items: list[Tensor | str]) -> Tensor | str:
    return next((item for item in items if isinstance(item, str)), None) or torch.stack(items)


def _stack(items: list[Tensor | str]) -> Tensor:
    stacked = _collate(items)
    if isinstance(stacked, str):
        raise UserError(stacked)
    return stacked
