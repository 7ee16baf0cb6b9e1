"""Where a Run's network kept its weights before training, after its first epoch, and in the end:
`python -m methods.first_epoch --run results/runs/RUN --out FILE.json`.

A training stores the network of its best epoch alone. Its randomness is a function of (seed, epoch, step), so its first epoch can be
repeated from the spec: the loss of the repetition is held against the one in the Run's history, and has to be the same up to rounding.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from methods.core import paths, sealed, settings
from methods.core.errors import UserError
from methods.data.load import Data, load_of
from methods.distributed.world import ALONE
from methods.networks.compact import run_model
from methods.networks.model_file import load_model
from methods.runtime.device import device as chosen_device
from methods.runtime.stopwatch import Stopwatch
from methods.sparse.choice import DENSE, taken_up
from methods.training.course import Course
from methods.training.loop import heartbeat, run_epoch, share_out
from methods.training.method import Method
from methods.training.optim import optimizer
from methods.training.publish import handed_over
from methods.training.registry import load_method
from methods.training.resume import Resume

TOLERANCE = 0.01  # relative, of the epoch's loss: another number of threads rounds differently, and a pruned network amplifies that
Masks = Mapping[str, Tensor]  # convolution -> where its weight is not zero


def masks_of(method: Method) -> Masks:
    """The masks of the network that would be deployed now."""
    return {name: conv.weight.detach().cpu() != 0 for name, conv in method.validated().convs()}


def first_epoch(method: Method, data: Data, engine: str) -> tuple[Masks, Masks, float]:
    """The masks before and after the first epoch of a training that `engine` computed, and the loss of that epoch."""
    method.engine = taken_up(engine, DENSE)
    method.optimizer = optimizer(method.trainables(), method.spec["train"])
    share_out(method, data, ALONE)
    before = masks_of(method)
    with tempfile.TemporaryDirectory() as folder:
        resume = Resume(Path(folder), "first epoch")
        course = Course(method, resume, Stopwatch(method.device), print)
        run_epoch(course, data, heartbeat(course, resume, ALONE), ALONE, stop=lambda: False, save_every=math.inf)
        resume.lock.release()
    return before, masks_of(method), course.close_epoch()["train_loss"]


def channels(masks: Masks) -> dict[str, dict[str, list[int]]]:
    """Convolution -> weights kept per input and per output channel."""
    return {name: {"inputs": mask.sum((0, 2, 3)).tolist(), "outputs": mask.sum((1, 2, 3)).tolist()} for name, mask in masks.items()}


def kept_in_both(one: Masks, other: Masks) -> dict[str, int]:
    """Convolution -> weights that two masks keep."""
    return {name: int((mask & other[name]).sum()) for name, mask in one.items()}


def describe(folder: Path, data_root: Path | None) -> dict[str, Any]:
    """The counts of a finished Run at its three moments."""
    manifest = sealed.read(folder / paths.MANIFEST)
    spec = manifest["spec"]
    lines = (folder / paths.HISTORY).read_text(encoding="utf-8").splitlines()
    if not lines:
        raise UserError(f"{folder / paths.HISTORY}: has no epoch; this Run trains nothing")
    recorded = json.loads(lines[0])["train_loss"]
    path, model = run_model(folder)
    last = {name: conv.weight.detach() != 0 for name, conv in load_model(path).convs()}
    data = load_of(spec, root=data_root)
    method = load_method(spec["method"])(spec, data, device=chosen_device(), parent=handed_over(folder, spec.get("parent")))
    before, after, loss = first_epoch(method, data, manifest["provenance"].get("engine", DENSE))
    if not math.isclose(loss, recorded, rel_tol=TOLERANCE):
        raise UserError(
            f"{folder}: its first epoch had the loss {recorded:.6f}, repeated it has {loss:.6f}; the code or the data are not those that"
            " trained it (`python -m workflow.suite show` names what has changed): train the Run again"
        )
    return {
        "model": model,
        "epochs": manifest["epochs"],
        "best_epoch": manifest["best_epoch"],
        "loss": {"recorded": recorded, "repeated": loss},
        "moments": {"start": channels(before), "first": channels(after), "last": channels(last)},
        "kept_in_both": {"start": kept_in_both(last, before), "first": kept_in_both(last, after)},
    }


def main(arguments: list[str] | None = None) -> int:
    """The command line; a problem that the user can solve is one line on stderr and exit code 2."""
    parser = argparse.ArgumentParser(
        prog="python -m methods.first_epoch", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--run", required=True, type=Path, help="folder of a finished Run; a parent Run is looked for beside it")
    parser.add_argument("--out", required=True, type=Path, help="the JSON file to write")
    parser.add_argument("--data-root", type=Path, default=settings.data_root(), help="where data sets lie (default: $SUITE_DATA_ROOT)")
    options = parser.parse_args(arguments)
    try:
        sealed.write(options.out, describe(options.run, options.data_root))
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"error: {error.filename or options.out}: {error.strerror or error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
