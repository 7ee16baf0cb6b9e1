"""ImageNet-100 from a folder of photographs: train/<wnid>/*, val/<wnid>/*, decoded by worker processes.

The classes are the first 100 of ImageNet-1k in sorted order (as in Continuum's ImageNet100, which the paper follows);
a label is the position in that list.
"""

import hashlib
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from methods.core.errors import UserError
from methods.data.photograph import picture
from methods.data.split import Batch, Pool, Split, generator, unit, within
from methods.data.torchvision_shim import torchvision
from methods.data.transfer import sent

WNIDS = tuple((Path(__file__).parent / "imagenet100_wnids.txt").read_text().split())
SUFFIXES = {".jpeg", ".jpg", ".png", ".bmp", ".webp"}
Sample = tuple[Path, int]


def pool(root: Path, *, size: int = 224, workers: int | None = None) -> Pool:
    """The photographs under root/imagenet or root, in sorted order; the folder `val` is the test set.

    Without a number, as many worker processes as this process has cores, at most 8.
    """
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
    if workers is None:
        workers = min(8, len(os.sched_getaffinity(0)))
    train, test = parts["train"], parts["val"]
    return Pool(
        count=len(train),
        pick=lambda index: FolderSplit([train[i] for i in index], size=size, workers=workers),
        test=FolderSplit(test, size=size, workers=workers),
        label=f"ImageNet-100: {len(train)} training and {len(test)} test images",
        origin="local folder",
        sha256=digests,
    )


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

    def __init__(self, samples: list[Sample], *, size: int, workers: int) -> None:
        super().__init__(torch.tensor([label for _, label in samples], dtype=torch.int64))
        self.paths = [path for path, _ in samples]
        self.size, self.workers = size, workers

    def gather(self, index: Tensor, device: str | torch.device = "cpu") -> Tensor:
        photographs = _Photographs(self.paths, self.size, "none", (None, 0))
        return unit(_readable(_stack([photographs[i] for i in index.tolist()], self.size)).to(device))

    def _read(
        self,
        chunks: list[tuple[int, Tensor]],
        stream: tuple[int | None, int],
        augment: str,
        device: torch.device,
        share: tuple[int, int],
    ) -> Iterator[Batch]:
        own = [index[within(len(index), share)] for _, index in chunks]
        loader = DataLoader(
            _Photographs(self.paths, self.size, augment, stream),
            batch_sampler=[index.tolist() for index in own],
            num_workers=min(self.workers, len(chunks)),
            collate_fn=partial(_stack, size=self.size),
            pin_memory=device.type == "cuda",
            generator=torch.Generator(),  # else every epoch would take a number from the global generator
        )
        for index, images in zip(own, loader, strict=True):
            x = unit(_readable(images).to(device, non_blocking=True))
            yield Batch(x, sent(self.labels[index], device), sent(index, device))


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
        try:
            image = picture(self.paths[index])
        except UserError as error:
            return str(error)
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


def _stack(items: list[Tensor | str], size: int) -> Tensor | str:
    messages = [item for item in items if isinstance(item, str)]
    if messages or not items:
        return messages[0] if messages else torch.empty((0, 3, size, size), dtype=torch.uint8)
    return torch.stack(items)


def _readable(images: Tensor | str) -> Tensor:
    if isinstance(images, str):
        raise UserError(images)
    return images
