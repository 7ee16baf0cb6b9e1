"""How the time of a pass grows with density and width, as numbers and as a plot."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from methods.bench.networks import pruned
from methods.bench.steps import batch
from methods.bench.turns import agree, turns
from methods.networks.fold import fold
from methods.networks.resnet import Net
from methods.sparse.choice import QuickForm

DENSITIES = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
WIDTHS = (0.25, 0.5, 1.0)


def passes(net: Net, x: Tensor, y: Tensor) -> dict[str, Callable[[], Tensor]]:
    """A pass of the folded dense network, and one of the engine; both checked."""
    folded, engine = fold(net).to(memory_format=torch.channels_last), QuickForm(net)
    last = x.contiguous(memory_format=torch.channels_last)

    def gradient(call: Callable[[Tensor], Tensor], images: Tensor) -> Tensor:
        images = images.detach().requires_grad_()
        return torch.autograd.grad(F.cross_entropy(call(images), y), images)[0]

    agree("gradients of images", gradient(engine, x), gradient(folded, last))
    return {"dense": lambda: gradient(folded, last), "sparse": lambda: gradient(engine, x)}


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
    from matplotlib.ticker import LogLocator, NullFormatter

    figure, axes = pyplot.subplots(figsize=(7.5, 4))
    for number, width in enumerate(sorted({point["width"] for point in points})):
        mine = [point for point in points if point["width"] == width]
        for name, style in (("sparse", "-o"), ("dense", "--")):
            label = f"{name}, width {width:g}"
            axes.loglog([p["density"] for p in mine], [p[name] for p in mine], style, color=f"C{number}", label=label, markersize=3)
    axes.set(xlabel="share of kept weights", ylabel="seconds of a pass (forward, gradient of images)", title=title)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.set_xticks(sorted({point["density"] for point in points}))
    axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150, bbox_inches="tight")
    pyplot.close(figure)
