"""How much faster the sparse engine computes pruned networks: `python -m methods.bench.sparse --out FILE [--plot FILE]`.

Both sides of every ratio are computed by turns in one process, and their answers are compared first: logits, and gradients of images and
of scores, agree to rounding. Networks have random +-1 weights under random masks, r = 0.99 and p = 0.1 unless a row says otherwise, and a
last batch norm. A pass is a forward pass in eval mode with the gradient of the images; rows named image are one image, forward. Seconds
are process time on one thread, and time of the clock on several.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from methods.bench.growth import growth, passes, plot
from methods.bench.image import one_image
from methods.bench.networks import pruned
from methods.bench.sparse_steps import compare_steps, finetune, lite_steps, rst, training_steps
from methods.bench.steps import batch
from methods.bench.turns import compared
from methods.core.errors import UserError
from methods.core.files import write_json
from methods.networks.resnet import Net
from methods.runtime.provenance import provenance
from methods.sparse.choice import QuickForm, lacking


def threads(net: Net, x: Tensor, y: Tensor, repeats: int) -> dict[str, Any]:
    """A pass of the engine on one thread and on two, whose bits are the same."""
    engine, bits = QuickForm(net), {}

    def call(count: int) -> None:
        before = torch.get_num_threads()
        torch.set_num_threads(count)
        images = x.detach().requires_grad_()
        (bits[count],) = torch.autograd.grad(F.cross_entropy(engine(images), y), images)
        torch.set_num_threads(before)

    before = torch.get_num_threads()
    torch.set_num_threads(2)  # the clock's time counts
    try:
        result = compared({"one": lambda: call(1), "two": lambda: call(2)}, repeats)
    finally:
        torch.set_num_threads(before)
    if not torch.equal(bits[1], bits[2]):
        raise UserError("one thread and two give different bits; no ratio is taken")
    return result


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m methods.bench.sparse", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rows", nargs="+", default=list(ROWS), choices=list(ROWS), metavar="ROW", help=f"of: {', '.join(ROWS)}")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--plot", type=Path, help="time against density and width, as a picture")
    options = parser.parse_args(arguments)
    try:
        if lacking() is not None:
            raise UserError(f"the sparse engine cannot run here: {lacking()}")
        results = {name: _told(name, ROWS[name](options.batch, options.repeats)) for name in options.rows}
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    made_by = provenance(torch.device("cpu"))
    if options.plot is not None and "growth" in results:
        machine = f"RN34 on {made_by['cpu']}, {made_by['threads']} thread(s), batch {results['growth']['batch']}"
        plot(results["growth"]["points"], machine, options.plot)
    write_json(options.out, {"bench": "sparse", "batch": options.batch, "rows": results, "provenance": made_by})
    return 0


def _told(name: str, result: dict[str, Any]) -> dict[str, Any]:
    """A row's result, printed as soon as it is there: the whole takes half an hour."""
    if "ratio" in result:
        print(f"{name}: " + ", ".join(f"{ratio:.2f}x as fast as {other}" for other, ratio in result["ratio"].items()), flush=True)
    for what in result.get("missing", []):
        print(f"  not measured: {what}", flush=True)
    return result


def _passes(arch: str, size: int, repeats: int) -> dict[str, Any]:
    x, y, _ = batch(size, torch.float32)
    return compared(passes(pruned(arch), x, y), repeats)


def _threads(size: int, repeats: int) -> dict[str, Any]:
    x, y, _ = batch(size, torch.float32)
    return threads(pruned("rn34"), x, y, repeats)


ROWS: dict[str, Callable[[int, int], dict[str, Any]]] = {
    "step_rn34": lambda size, repeats: training_steps("rn34", size, repeats, plain=True),
    "step_rn18": lambda size, repeats: training_steps("rn18", size, repeats, plain=False),
    "step_rst": lambda size, repeats: compare_steps(partial(rst, "rn34"), size, repeats),
    "step_finetune": lambda size, repeats: compare_steps(partial(finetune, "rn34"), size, repeats),
    "step_lite": lambda size, repeats: lite_steps(64, max(repeats, 5)),
    "pass_rn34": lambda size, repeats: _passes("rn34", size, repeats),
    "image_rn34": lambda size, repeats: one_image(pruned("rn34"), max(repeats, 50)),
    "image_rn18": lambda size, repeats: one_image(pruned("rn18"), max(repeats, 50)),
    "threads_rn34": _threads,
    "growth": lambda size, repeats: {"batch": min(size, 32), "points": growth("rn34", min(size, 32), repeats)},
}


if __name__ == "__main__":
    sys.exit(main())
