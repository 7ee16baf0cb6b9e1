"""How much faster the sparse engine computes pruned networks: `python -m methods.bench.sparse --out FILE [--plot FILE]`.

Both sides of every ratio are computed by turns in one process, and their answers are compared first: logits, and gradients of images and
of scores, agree to rounding. Networks have random +-1 weights under random masks, r = 0.99 and p = 0.1 unless a row says otherwise, and a
last batch norm. A pass is a forward pass in eval mode with the gradient of the images. Seconds are process time on one thread, and time of
the clock on several.
"""

from __future__ import annotations

import argparse
import copy
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from methods.attacks.pgd import mode, pgd
from methods.bench.train import ALPHA, EPS, LeanStep, PlainStep, batch, steps
from methods.core.allocation import adaptive_counts
from methods.core.errors import UserError
from methods.core.files import write_json
from methods.networks.fold import fold
from methods.networks.resnet import Net, build
from methods.runtime.provenance import provenance
from methods.sparse.choice import SPARSE, QuickForm, computed_by, lacking

DENSITIES = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
WIDTHS = (0.25, 0.5, 1.0)
ROUNDING = 1e-2  # of gradients: a ReLU at zero may round to either side


class SparseStep(LeanStep):
    """The lean step, computed by the engine."""

    def __call__(self, x: Tensor, y: Tensor, u: Tensor) -> Tensor:
        with computed_by(SPARSE, self.net):
            return super().__call__(x, y, u)


def turns(calls: dict[str, Callable[[], Any]], repeats: int) -> dict[str, list[float]]:
    """Seconds of each call, by turns; the first of each is not counted."""
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(repeats + 1):
        for name, call in calls.items():
            started = clock()
            call()
            if turn:
                seconds[name].append(clock() - started)
    return seconds


def compared(calls: dict[str, Callable[[], Any]], repeats: int) -> dict[str, Any]:
    """Seconds of each call, and how many times faster the last one is than each of the others."""
    seconds = turns(calls, repeats)
    *others, ours = calls
    ratios = {name: [a / b for a, b in zip(seconds[name], seconds[ours], strict=True)] for name in others}
    return {"seconds": seconds, "ratio": {name: statistics.median(values) for name, values in ratios.items()}, "n": repeats}


def pruned(arch: str, *, keep: float = 0.01, width: float = 1.0) -> Net:
    """Random +-1 weights under random masks, with running statistics of random images."""
    draws = torch.Generator().manual_seed(1)
    net = build(arch, classes=10, lbn=True, width=width)
    convs = [conv for _, conv in net.convs()]
    with torch.no_grad():
        for conv, kept in zip(convs, adaptive_counts([conv.weight.numel() for conv in convs], 1 - keep, 0.1), strict=True):
            mask = torch.zeros(conv.weight.numel()).index_fill_(0, torch.rand(conv.weight.numel(), generator=draws).topk(kept).indices, 1)
            conv.weight.copy_((torch.randint(2, conv.weight.shape, generator=draws) * 2 - 1) * mask.view_as(conv.weight))
        net.train()(torch.rand(32, 3, 32, 32, generator=draws))
    return net.eval().requires_grad_(False)


def passes(net: Net, x: Tensor, y: Tensor) -> dict[str, Callable[[], Tensor]]:
    """A pass of the folded dense network, and one of the engine; both checked."""
    folded, engine = fold(net).to(memory_format=torch.channels_last), QuickForm(net)
    last = x.contiguous(memory_format=torch.channels_last)

    def gradient(call: Callable[[Tensor], Tensor], images: Tensor) -> Tensor:
        images = images.detach().requires_grad_()
        return torch.autograd.grad(F.cross_entropy(call(images), y), images)[0]

    agree("gradients of images", gradient(engine, x), gradient(folded, last))
    return {"dense": lambda: gradient(folded, last), "sparse": lambda: gradient(engine, x)}


def agree(what: str, ours: Tensor, theirs: Tensor) -> None:
    """Stop where the median over rows of the relative difference is more than rounding: such a ratio would mean nothing."""
    apart = (ours - theirs).flatten(1).norm(dim=1) / theirs.flatten(1).norm(dim=1).clamp(min=1e-12)
    if not apart.median() < ROUNDING:
        raise UserError(f"{what} of the two sides differ by {apart.median():.1e} (median); no ratio is taken")


def training_steps(arch: str, size: int, repeats: int, *, plain: bool, width: float = 1.0) -> dict[str, Any]:
    """A PGD-10 step of the paper's method as published (where asked for), of the suite, and by the engine."""
    published, lean = steps(arch, torch.float32, width)
    _, sparse = steps(arch, torch.float32, width)  # the same network once more
    sparse.__class__ = SparseStep
    x, y, u = batch(size, torch.float32)
    for step in (lean, sparse):
        with mode(step.net, training=True), computed_by(SPARSE if step is sparse else "dense", step.net):
            F.cross_entropy(step.net(x), y).backward()
    for (_, ours), (_, theirs) in zip(sparse.net.convs(), lean.net.convs(), strict=True):
        agree("gradients of weights", ours.weight.grad, theirs.weight.grad)
        ours.weight.grad = theirs.weight.grad = None
    calls: dict[str, PlainStep | LeanStep] = {"plain": published} if plain else {}
    calls |= {"lean": lean, "sparse": sparse}
    return compared({name: lambda call=call: call(x, y, u) for name, call in calls.items()}, repeats)


def lite_steps(size: int, repeats: int) -> dict[str, Any]:
    """RN18 of half the width on 16 x 16 images, PGD of 3 steps: the attack, the step's forward and backward pass, without scores."""
    nets = {"dense": pruned("rn18", width=0.5).requires_grad_(True).train()}
    nets["sparse"] = copy.deepcopy(nets["dense"])
    nets["dense"].to(memory_format=torch.channels_last)
    draws = torch.Generator().manual_seed(2)
    x, y = torch.rand(size, 3, 16, 16, generator=draws), torch.randint(10, (size,), generator=draws)

    def step(name: str) -> None:
        with computed_by(name, nets[name]):
            adv = pgd(nets[name], x, y, eps=EPS, alpha=ALPHA, steps=3, generator=torch.Generator().manual_seed(0))
            loss = F.cross_entropy(nets[name](adv), y)
        nets[name].zero_grad()
        loss.backward()

    return compared({name: lambda name=name: step(name) for name in nets}, repeats)


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


def growth(arch: str, size: int, repeats: int) -> list[dict[str, float]]:
    """Seconds of a pass, dense and sparse, at every density and width."""
    x, y, _ = batch(size, torch.float32)
    points = []
    for width in WIDTHS:
        for keep in DENSITIES:
            seconds = turns(passes(pruned(arch, keep=keep, width=width), x, y), repeats)
            points.append({"width": width, "density": keep, **{name: statistics.median(values) for name, values in seconds.items()}})
    return points


def plot(points: list[dict[str, float]], title: str, path: Path) -> None:
    """Time of a pass against density, one line per width."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 4))
    for number, width in enumerate(sorted({point["width"] for point in points})):
        mine = [point for point in points if point["width"] == width]
        for name, style in (("sparse", "-o"), ("dense", "--")):
            label = f"{name}, width {width:g}"
            axes.loglog([p["density"] for p in mine], [p[name] for p in mine], style, color=f"C{number}", label=label, markersize=3)
    axes.set(xlabel="share of kept weights", ylabel="seconds of a pass", title=title)
    axes.legend(fontsize=7)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150, bbox_inches="tight")
    pyplot.close(figure)


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
        results = {name: ROWS[name](options.batch, options.repeats) for name in options.rows}
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    made_by = provenance(torch.device("cpu"))
    for name, result in results.items():
        if "ratio" in result:
            print(f"{name}: " + ", ".join(f"{ratio:.2f}x as fast as {other}" for other, ratio in result["ratio"].items()))
    if options.plot is not None and "growth" in results:
        plot(results["growth"]["points"], f"{made_by['cpu']}, {made_by['threads']} thread(s), batch {options.batch}", options.plot)
    write_json(options.out, {"bench": "sparse", "batch": options.batch, "rows": results, "provenance": made_by})
    return 0


def _passes(arch: str, size: int, repeats: int) -> dict[str, Any]:
    x, y, _ = batch(size, torch.float32)
    return compared(passes(pruned(arch), x, y), repeats)


def _threads(size: int, repeats: int) -> dict[str, Any]:
    x, y, _ = batch(size, torch.float32)
    return threads(pruned("rn34"), x, y, repeats)


ROWS: dict[str, Callable[[int, int], dict[str, Any]]] = {
    "step_rn34": lambda size, repeats: training_steps("rn34", size, repeats, plain=True),
    "step_rn18": lambda size, repeats: training_steps("rn18", size, repeats, plain=False),
    "step_lite": lambda size, repeats: lite_steps(64, max(repeats, 5)),
    "pass_rn34": lambda size, repeats: _passes("rn34", size, repeats),
    "image_rn34": lambda size, repeats: _passes("rn34", 1, max(repeats, 10)),
    "threads_rn34": _threads,
    "growth": lambda size, repeats: {"points": growth("rn34", min(size, 32), repeats)},
}


if __name__ == "__main__":
    sys.exit(main())
