"""Where a Run's network kept its weights before training, after its first epoch, and in the end, and which of the pruned ones the loss
depends on: `python -m methods.first_epoch --run results/runs/RUN --out FILE.json`.

A training stores the network of its best epoch alone. Its randomness is a function of (seed, epoch, step), so its first epoch can be
repeated from the spec: the loss of the repetition is held against the one in the Run's history, and has to be the same up to rounding.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from methods.core import paths, sealed, settings
from methods.core.errors import UserError
from methods.data.load import Data, load_of
from methods.distributed.world import ALONE
from methods.networks.compact import run_model
from methods.networks.model_file import load_model
from methods.networks.resnet import Net
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
IMAGES = 256  # of the validation images: what the loss depends on is looked at over these
Masks = Mapping[str, Tensor]  # convolution -> where its weight is not zero


class Moment:
    """A network as it was at some time: its masks, and which of its pruned weights have a gradient."""

    def __init__(self, net: Net, data: Data):
        self.masks: Masks = {name: conv.weight.detach().cpu() != 0 for name, conv in net.convs()}
        self.gradients = gradients(net, data)


def gradients(net: Net, data: Data) -> dict[str, dict[str, int]]:
    """Convolution -> how many weights are pruned, how many of these have a gradient of exactly zero, and the same of the pruned weights of
    empty channels.

    The gradient is that of a training pass over some images. Without one nothing but weight decay moves a score: such a weight can only
    come back if kept ones sink below it.
    """
    net = copy.deepcopy(net).train().requires_grad_(True)
    batch = next(iter(data.val.batches(batch=min(IMAGES, len(data.val)), device=net.stem.weight.device)))
    weights = {name: conv.weight for name, conv in net.convs()}
    slopes = torch.autograd.grad(F.cross_entropy(net(batch.x), batch.y), list(weights.values()))
    counts = {}
    for (name, weight), slope in zip(weights.items(), slopes, strict=True):
        kept, flat = weight.detach() != 0, slope == 0
        outputs, inputs = kept.sum((1, 2, 3), keepdim=True), kept.sum((0, 2, 3), keepdim=True)
        empty = ~kept & ((outputs == 0) | (inputs == 0))
        counts[name] = {
            "pruned": int((~kept).sum()),
            "without": int((~kept & flat).sum()),
            "empty": int(empty.sum()),
            "empty_without": int((empty & flat).sum()),
        }
    return counts


def first_epoch(method: Method, data: Data, engine: str) -> tuple[Moment, Moment, float]:
    """Before and after the first epoch of a training that `engine` computed, and the loss of that epoch."""
    method.engine = taken_up(engine, DENSE)
    method.optimizer = optimizer(method.trainables(), method.spec["train"])
    share_out(method, data, ALONE)
    before = Moment(method.validated(), data)
    with tempfile.TemporaryDirectory() as folder:
        resume = Resume(Path(folder), "first epoch")
        course = Course(method, resume, Stopwatch(method.device), print)
        run_epoch(course, data, heartbeat(course, resume, ALONE), ALONE, stop=lambda: False, save_every=math.inf)
        resume.lock.release()
    return before, Moment(method.validated(), data), course.close_epoch()["train_loss"]


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
    data = load_of(spec, root=data_root)
    last = Moment(load_model(path).to(chosen_device()), data)
    method = load_method(spec["method"])(spec, data, device=chosen_device(), parent=handed_over(folder, spec.get("parent")))
    before, after, loss = first_epoch(method, data, manifest["provenance"].get("engine", DENSE))
    if not math.isclose(loss, recorded, rel_tol=TOLERANCE):
        raise UserError(
            f"{folder}: its first epoch had the loss {recorded:.6f}, repeated it has {loss:.6f}; the code or the data are not those that"
            " trained it (`python -m workflow.suite show` names what has changed): train the Run again"
        )
    moments = {"start": before, "first": after, "last": last}
    return {
        "model": model,
        "epochs": manifest["epochs"],
        "best_epoch": manifest["best_epoch"],
        "loss": {"recorded": recorded, "repeated": loss},
        "moments": {name: channels(then.masks) for name, then in moments.items()},
        "kept_in_both": {name: kept_in_both(last.masks, moments[name].masks) for name in ("start", "first")},
        "gradients": {name: then.gradients for name, then in moments.items()},
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
