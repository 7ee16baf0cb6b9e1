"""Whether the loader of ImageNet-100 keeps up: `python -m methods.bench.loader --out FILE`.

Reads and augments photographs on one core, with the suite's reader and with Pillow alone by turns, then times real training steps of the
paper's fast attack on 224x224 images on this device. Images per second and core, beside those that a step takes in, say how many cores
a device needs. The photographs are made here, of ImageNet's usual 500x375 pixels and about its 110 kB.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from methods.core.errors import UserError
from methods.core.files import write_json
from methods.core.run_spec import merge
from methods.data import imagenet, photograph, sample
from methods.data.imagenet import FolderSplit
from methods.data.load import load_of
from methods.distributed.world import ALONE
from methods.runtime.device import device as chosen_device
from methods.runtime.provenance import provenance
from methods.training.optim import optimizer
from methods.training.registry import load_method, load_recipe
from methods.training.step import step

SIZE, QUALITY, GRAIN = (500, 375), 90, 8.0
READERS: dict[str, Callable[[Path], Image.Image]] = {"suite": photograph.picture, "pillow": photograph._plainly}


def photographs(folder: Path, count: int) -> list[tuple[Path, int]]:
    """So many files: CIFAR images side by side, enlarged, with film grain for the detail that enlarging lacks."""
    draws = np.random.default_rng(0)
    tiles = sample.read()[0]["train_images"]
    made = []
    for number in range(count):
        chosen = tiles[draws.integers(0, len(tiles), 48)].reshape(6, 8, 32, 32, 3).swapaxes(1, 2).reshape(192, 256, 3)
        pixels = np.asarray(Image.fromarray(chosen).resize(SIZE, Image.Resampling.BICUBIC)) + draws.normal(0, GRAIN, (*SIZE[::-1], 3))
        path = folder / f"{number}.JPEG"
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(path, "JPEG", quality=QUALITY)
        made.append((path, number % 100))
    return made


def reading(files: list[tuple[Path, int]], *, augment: str, repeats: int) -> dict[str, list[float]]:
    """Images per second of processor time on one core, for each reader, by turns."""
    split = FolderSplit(files, size=224, workers=0)
    rates: dict[str, list[float]] = {name: [] for name in READERS}
    before = imagenet.picture
    try:
        for turn in range(repeats):
            for name, reader in READERS.items():
                imagenet.picture = reader
                started = time.process_time()
                for _ in split.batches(batch=16, seed=1, epoch=turn, augment=augment):
                    pass
                rates[name].append(len(files) / (time.process_time() - started))
    finally:
        imagenet.picture = before
    return rates


def training(arch: str, batch: int, compute: str, repeats: int, device: torch.device) -> list[float]:
    """Images per second that steps of the paper's method take in on this device; the first step is not counted."""
    recipe = load_recipe("binary_subnet")["run"]
    here = {
        **{"method": "binary_subnet", "dataset": "imagenet100", "eps": "2/255", "seed": 1, "arch": arch},
        **{"data": {"source": "stand-in", "train": batch, "val": 1}, "attack": {"name": "fgsm_atta", "step": 0.5}},
        "train": {"batch": batch, "compute": compute},
    }
    spec = merge(recipe, here)
    data = load_of(spec)
    method = load_method("binary_subnet")(spec, data, device=device)
    method.optimizer = optimizer(method.trainables(), spec["train"])
    images = next(data.train.batches(batch=batch, seed=1, device=device))
    rates = []
    for turn in range(repeats + 1):
        started = time.perf_counter()
        step(method, images, turn, 0, ALONE)
        if device.type == "cuda":
            torch.cuda.synchronize()
        rates.append(batch / (time.perf_counter() - started))
    return rates[1:]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m methods.bench.loader", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--photographs", type=int, default=64, help="default 64")
    parser.add_argument("--arch", default="rn34", help="of the training step; default rn34")
    parser.add_argument("--batch", type=int, help="of the training step; default 256 on a GPU, 4 on a CPU")
    parser.add_argument("--compute", choices=("fp32", "bf16"), default="fp32", help="of the training step; default fp32")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    try:
        device = chosen_device()
        with tempfile.TemporaryDirectory() as folder:
            files = photographs(Path(folder), options.photographs)
            size = statistics.mean(path.stat().st_size for path, _ in files)
            rates = {name: reading(files, augment=name, repeats=options.repeats) for name in ("resized_crop_flip", "none")}
        batch = options.batch or (256 if device.type == "cuda" else 4)
        taken = training(options.arch, batch, options.compute, options.repeats, device)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for name, readers in rates.items():
        suite, pillow = (statistics.median(readers[reader]) for reader in READERS)
        print(f"{name}: {suite:.0f} images per second and core, {suite / pillow:.2f}x Pillow alone ({size / 1000:.0f} kB each)")
    need, have = statistics.median(taken), statistics.median(rates["resized_crop_flip"]["suite"])
    cores = f"{need / have:.2f} of {os.cpu_count()} cores feed it"
    print(f"{options.arch}, {options.compute}: a step takes in {need:.1f} images per second: {cores}")
    report = {"bench": "loader", "bytes": size, "images_per_second": rates, "step": {"arch": options.arch, "batch": batch, "rates": taken}}
    write_json(options.out, report | {"provenance": provenance(device)})
    return 0


if __name__ == "__main__":
    sys.exit(main())
