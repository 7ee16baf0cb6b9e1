"""Repeat recorded official steps with the suite's own code: `python -m tests.golden.replay FILE...`.

Prints the largest deviation of each quantity beside its tolerance. Exit code 1: something deviates more than it may; 2: a file cannot be
read or is of an unknown kind. The kind of a file is the start of its name (`forward_rn18.npz` is a `forward`); modules named kinds_*.py in
this folder say which kinds exist.
"""

from __future__ import annotations

import argparse
import importlib
import math
import sys
from collections.abc import Callable
from pathlib import Path
from zipfile import BadZipFile

import torch

from tests.golden.check import Check, Unreadable

Kind = Callable[[Path], list[Check]]


def kinds() -> dict[str, Kind]:
    """Every kind of recording that can be repeated."""
    kinds_by_name: dict[str, Kind] = {}
    for file in sorted(Path(__file__).parent.glob("kinds_*.py")):
        for name, kind in importlib.import_module(f"tests.golden.{file.stem}").KINDS.items():
            if name in kinds_by_name:
                raise ValueError(f"{file.name}: kind '{name}' is defined twice")
            kinds_by_name[name] = kind
    return kinds_by_name


def kind_of(path: Path, known: dict[str, Kind]) -> Kind:
    """The kind with the longest name that the file's name starts with."""
    if not path.is_file():
        raise Unreadable(f"{path}: no such file")
    fitting = [name for name in known if path.stem.startswith(name)]
    if not fitting:
        raise Unreadable(f"{path}: unknown kind of recording; known: {', '.join(sorted(known))}")
    return known[max(fitting, key=len)]


def worst(checks: list[Check]) -> list[Check]:
    """The check of each quantity that comes nearest to its tolerance, or exceeds it most."""

    def excess(check: Check) -> tuple[float, float]:
        if math.isnan(check.deviation):
            return math.inf, math.inf
        share = check.deviation / check.tolerance if check.tolerance else (math.inf if check.deviation else 0.0)
        return share, check.deviation

    quantities = dict.fromkeys(check.quantity for check in checks)
    return [max((c for c in checks if c.quantity == quantity), key=excess) for quantity in quantities]


def show(path: Path, checks: list[Check]) -> bool:
    """Print the file's table; true when all is within tolerance."""
    failed = [check for check in checks if not check.passed]
    print(f"{path.name}: {len(checks)} comparisons, {len(failed)} beyond tolerance")
    for check in worst(checks):
        allowed = "reported only" if math.isinf(check.tolerance) else f"<= {check.tolerance:.3g}"
        verdict = "ok" if check.passed else "DEVIATES"
        print(f"  {check.quantity:<46} {check.deviation:<12.4g} {allowed:<14} {verdict:<9}{check.note}".rstrip())
    return not failed


def repeat(path: Path, kind: Kind) -> list[Check]:
    """The file's checks; whatever is wrong with the file itself is one clear error."""
    try:
        return kind(path)
    except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
        raise Unreadable(f"{path}: not a complete recording of its kind ({type(error).__name__}: {error})") from None


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.golden.replay", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="a recording (.npz or .json)")
    torch.set_num_threads(1)
    files = parser.parse_args(arguments).files
    try:
        known = kinds()
        recordings = [(file, kind_of(file, known)) for file in files]
        good = [show(file, repeat(file, kind)) for file, kind in recordings]
    except Unreadable as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
