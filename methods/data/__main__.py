"""Verify a data set and write a small manifest of it: `python -m methods.data --help`."""

import argparse
import sys
from pathlib import Path

from methods.core import files
from methods.core.datasets import DATASETS
from methods.core.errors import UserError
from methods.data.load import ROOT, load


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m methods.data",
        description="Verify a data set (downloading it where that is possible) and write a small manifest of it.",
    )
    parser.add_argument("--dataset", required=True, help=f"one of: {', '.join(DATASETS)}")
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
        files.write_json(options.out, manifest)
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
