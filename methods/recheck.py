"""Attack a finished network again, on images that come with the project, and hold the outcome against the recorded one:
`python -m methods.recheck --run results/runs/RUN --result results/runs/RUN/eval/ID.json --examples 50`.

The shipped sample has the first test images of CIFAR-10, so that the recorded outcome of each of these images is known. The attack is the
recorded one, on fewer images: they are attacked together, so that its random numbers are others, and a few images may fall the other way.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import msgspec

from methods.core import eval_result, eval_spec, paths, sealed
from methods.core.errors import UserError
from methods.core.eval_result import CLEAN, ROBUST

DATASET, SOURCE = "cifar10", "sample"


def recheck(run: Path, recorded: dict[str, Any], examples: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What broke each of the first images, by the record and now."""
    from methods.data.load import load
    from methods.evaluation.images import from_split
    from methods.evaluation.runner import run_shard
    from methods.networks.compact import run_model
    from methods.networks.model_file import load_model
    from methods.runtime.device import device as chosen_device

    spec = sealed.read(run / paths.MANIFEST)["spec"]
    if spec["dataset"] != DATASET:
        raise UserError(f"{run}: is a network for {spec['dataset']}; images that ship with the project are of {DATASET}")
    path, model = run_model(run)
    if recorded.get("model") != model:
        raise UserError(f"{run}: the result is of another network than {path}; evaluate it again")
    before = eval_result.decode(recorded["broken_by"])[:examples]
    data = load(DATASET, source=SOURCE, size=spec["data"].get("size"))
    attack = msgspec.structs.replace(eval_spec.parse(recorded["spec"]), examples=len(before), block=len(before))
    shard = run_shard(load_model(path), from_split(data.test), attack, model=model, device=chosen_device(), stream=sys.stderr, trust=False)
    return before, eval_result.summarise(attack, shard.blocks).broken


def report(before: tuple[str, ...], now: tuple[str, ...], recorded: dict[str, Any], seconds: float) -> str:
    """Both numbers, side by side, and how many images came out alike."""
    n = len(now)
    lines = [f"the first {n} test images, recorded and now ({seconds:.0f} s):"]
    for name, right in (("clean accuracy", lambda by: by != CLEAN), ("robust accuracy", lambda by: by == ROBUST)):
        counts = [sum(map(right, outcome)) for outcome in (before, now)]
        lines.append(f"  {name:16s}{100 * counts[0] / n:6.1f} %  {100 * counts[1] / n:6.1f} %")
    alike = sum((a == ROBUST) == (b == ROBUST) for a, b in zip(before, now, strict=True))
    lines.append(f"  {alike} of {n} images came out alike")
    if recorded.get("robust_acc") is not None:
        lines.append(f"  recorded on all {recorded['n']} images: robust accuracy {100 * recorded['robust_acc']:.1f} %")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """The command line; a problem that the user can solve is one line on stderr and exit code 2."""
    parser = argparse.ArgumentParser(
        prog="python -m methods.recheck", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--run", required=True, type=Path, help="folder of a finished Run")
    parser.add_argument("--result", required=True, type=Path, help="its evaluation, as merged")
    parser.add_argument("--examples", type=int, default=50, metavar="N", help="how many of the first images (default: 50)")
    options = parser.parse_args(arguments)
    try:
        if options.examples < 1:
            raise UserError(f"--examples {options.examples}: at least 1")
        recorded, start = sealed.read(options.result), time.perf_counter()
        before, now = recheck(options.run, recorded, options.examples)
        print(report(before, now, recorded, time.perf_counter() - start))
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
