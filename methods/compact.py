"""Compact files: a pruned network in a few hundred kilobytes, exactly (see methods.networks.compact).

    python -m methods.compact pack results/runs/RUN net.rbs        or a model.safetensors in place of the run's folder
    python -m methods.compact unpack net.rbs model.safetensors
    python -m methods.compact show net.rbs
    python -m methods.compact predict net.rbs photograph.png

In Python: `from methods import load_network; net = load_network("net.rbs")`.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
import warnings
from collections.abc import Iterator
from math import log2
from pathlib import Path
from typing import TYPE_CHECKING

from methods.core.class_names import class_names
from methods.core.errors import UserError

if TYPE_CHECKING:
    from torch import Tensor

    from methods.networks.compact import Header
    from methods.networks.resnet import Net

REPEATS = 5


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="python -m methods.compact", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = top.add_subparsers(required=True)
    packing = commands.add_parser("pack", help="write a compact file")
    packing.add_argument("network", type=Path, metavar="RUN|MODEL", help="the folder of a finished run, or a model.safetensors")
    packing.add_argument("out", type=Path)
    packing.add_argument("--half", action="store_true", help="round real-valued kept weights to float16: smaller, and not exact")
    packing.set_defaults(command=pack)
    unpacking = commands.add_parser("unpack", help="write the model file of a compact one")
    unpacking.add_argument("file", type=Path)
    unpacking.add_argument("out", type=Path, metavar="MODEL")
    unpacking.set_defaults(command=unpack)
    showing = commands.add_parser("show", help="what a compact file holds")
    showing.add_argument("file", type=Path)
    showing.set_defaults(command=show)
    predicting = commands.add_parser("predict", help="the class of a picture")
    predicting.add_argument("file", type=Path)
    predicting.add_argument("image", type=Path)
    predicting.add_argument("--top", type=int, default=5, metavar="N", help="how many classes to name (default: 5)")
    predicting.set_defaults(command=predict)
    return top


def pack(options: argparse.Namespace) -> None:
    from methods.networks import compact
    from methods.networks.model_file import load_model, load_tensors

    path = compact.run_model(options.network)[0] if options.network.is_dir() else options.network
    net = load_model(path)
    compact.pack(net, load_tensors(path)[1].get("spec", {}), options.out, half=options.half)  # type: ignore[arg-type]
    show(argparse.Namespace(file=options.out))
    print(f"{path}: {path.stat().st_size:,} bytes")


def unpack(options: argparse.Namespace) -> None:
    from methods.networks import compact

    with notes():
        compact.unpack(options.file, options.out)
    print(f"{options.out}: {options.out.stat().st_size:,} bytes")


def read(path: Path) -> tuple[Net, Header]:
    """The network of a compact file, and what the file says of it."""
    from methods.networks import compact

    with notes():
        return compact.read(path)


@contextlib.contextmanager
def notes() -> Iterator[None]:
    """What the library warns of, as lines for a person."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        print(f"note: {warning.message}", file=sys.stderr)


def show(options: argparse.Namespace) -> None:
    from methods.networks.compact.mask import entropy

    net, header = read(options.file)
    total, (coded, real, numbers) = options.file.stat().st_size, header.sections
    sizes = [conv.weight.numel() for _, conv in net.convs()]
    kept = sum(layer.kept for layer in header.layers)
    bits = sum(
        entropy(size, layer.kept) + layer.kept * log2(max(layer.levels, 1)) for size, layer in zip(sizes, header.layers, strict=True)
    )
    names = {"law": "signs drawn from the seed", "codebook": "coded values", "real": "float16 values" if header.half else "float32 values"}
    kinds = " and ".join(names[kind] for kind in dict.fromkeys(layer.values for layer in header.layers))
    print(f"{options.file}: {total:,} bytes: {header.network.arch}, {kept:,} of {sum(sizes):,} weights, {kinds}")
    print(f"  masks and codes  {coded:>9,}  ({8 * coded / bits if bits else 1:.3f} of their entropy given the counts, {bits / 8:,.0f})")
    print(f"  kept weights     {real:>9,}")
    print(f"  batch norms etc. {numbers:>9,}")
    print(f"  description      {total - coded - real - numbers:>9,}")


def predict(options: argparse.Namespace) -> None:
    from methods.latency import Predictor

    start = time.perf_counter()
    net, header = read(options.file)
    loaded = time.perf_counter() - start
    picture = load_picture(options.image, side_of(header))
    start = time.perf_counter()
    predictor = Predictor(net)
    chances = predictor(picture).softmax(1)[0]
    ready = time.perf_counter() - start
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        predictor(picture)
        times.append(time.perf_counter() - start)
    names = class_names(header.spec.get("dataset"), header.network.classes)
    for place in chances.argsort(descending=True)[: max(options.top, 1)].tolist():
        print(f"{chances[place]:8.2%}  {names[place]}")
    how = "kept weights alone" if predictor.reason is None else f"dense convolutions ({predictor.reason})"
    print(f"loaded in {loaded:.2f} s, ready in {ready:.2f} s, one image in {1000 * min(times):.1f} ms (the fastest of {REPEATS}) by {how}")


def side_of(header: Header) -> int:
    """How many pixels high and wide the images are that the network was trained on."""
    data = header.spec.get("data")
    size = data.get("size") if isinstance(data, dict) else None
    own = 224 if header.network.stem == "imagenet" else 32
    return size if isinstance(size, int) and 1 < size < own else own


def load_picture(path: Path, side: int) -> Tensor:
    """An image file as the network's test images are (ImageNet's are the middle of slightly larger ones), as a batch in [0, 1]."""
    import torch
    from PIL import Image, ImageOps

    try:
        with Image.open(path) as opened:
            image = opened.convert("RGB")
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except (OSError, ValueError, Image.DecompressionBombError) as error:
        raise UserError(f"{path}: cannot be read as an image ({error})") from None
    if image.size != (side, side):
        bleed = 16 / 256 if side >= 64 else 0.0  # on each side, of ImageNet's test images: 224 of 256 pixels remain
        image = ImageOps.fit(image, (side, side), Image.Resampling.BILINEAR, bleed)
        print(f"note: {path} was cut and resized to {side} x {side} pixels", file=sys.stderr)
    pixels = torch.frombuffer(bytearray(image.tobytes()), dtype=torch.uint8)
    return pixels.view(1, side, side, 3).permute(0, 3, 1, 2).float().div(255)


def main(arguments: list[str] | None = None) -> int:
    """The command line; a problem that the user can solve is one line on stderr and exit code 2."""
    options = parser().parse_args(arguments)
    try:
        options.command(options)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"error: {error.filename}: {error.strerror or error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
