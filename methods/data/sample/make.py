"""Make the shipped CIFAR-10 sample from the full data set: `python -m methods.data.sample.make --root DIR [--out DIR]`."""

import argparse
import sys
from pathlib import Path

from methods.core.errors import UserError
from methods.data import cifar, sample


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m methods.data.sample.make", description=__doc__)
    parser.add_argument("--root", type=Path, required=True, help="folder with (or for) the full CIFAR-10")
    parser.add_argument("--out", type=Path, default=sample.FOLDER, help="where to write (default: the shipped files)")
    options = parser.parse_args(argv)
    try:
        arrays = cifar.read("cifar10", options.root).arrays
        options.out.mkdir(parents=True, exist_ok=True)
        first = {key: array[: sample.COUNTS[key.split("_")[0]]] for key, array in arrays.items()}
        sample.write(
            options.out,
            {part: first[f"{part}_images"] for part in sample.COUNTS},
            {part: first[f"{part}_labels"] for part in sample.COUNTS},
        )
        sample.read(options.out)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
