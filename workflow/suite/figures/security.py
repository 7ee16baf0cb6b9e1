"""Security curves: robust accuracy against the radius, of every Run that `methods.evaluate curve` has been asked for."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import seaborn
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from methods.core import paths, sealed
from methods.core.datasets import DATASETS
from methods.core.errors import UserError
from methods.core.radius import radius
from workflow.suite.figures import style
from workflow.suite.figures.needs import security_runs
from workflow.suite.figures.style import OURS, PLAIN, Picture
from workflow.suite.planning.plan import Plan
from workflow.suite.results import names

UNITS = {"Linf": ("radius in Linf, of 255", 255), "L2": ("radius in L2", 1)}
NEEDED = ("radii", "accuracy", "clean_acc", "n", "norm")
MARKERS = "osD^vPX*<>pH"


def draw(plan: Plan, folder: Path, title: str, foot: str) -> Picture:
    """One panel per norm, a line per Run; the radius of the training is dashed."""
    runs = security_runs(plan, folder)
    everyone = list(dict.fromkeys(run for norm in paths.CURVE_NORMS for run in runs[norm]))
    others = iter(seaborn.color_palette("colorblind", len(everyone)))
    colours = {run: OURS if names.method(plan.runs[run].spec) in names.OURS else next(others) for run in everyone}
    words = "APGD on the cross-entropy and on targeted margins; what breaks within a ball counts as broken in every larger one."
    figure = style.sheet(9.2, 3.6, title, f"{foot}\n{words}")
    said = []
    panels = figure.subplots(1, len(paths.CURVE_NORMS), sharey=True)
    for axes, norm in zip(panels, paths.CURVE_NORMS, strict=True):
        label, unit = UNITS[norm]
        axes.set(title=norm, xlabel=label, ylim=(0, 1))
        for run in runs[norm]:
            curve = read(run, norm, folder)
            marker = MARKERS[everyone.index(run) % len(MARKERS)]
            xs = [0.0, *(unit * radius(text) for text in curve["radii"])]
            ys = [curve["clean_acc"], *curve["accuracy"]]
            axes.plot(xs, ys, color=colours[run], marker=marker, markersize=4, linewidth=1, label=describe(plan, run))
            points = ", ".join(f"{text} {value:.1%}" for text, value in zip(curve["radii"], curve["accuracy"], strict=True))
            said.append(f"{norm}, {describe(plan, run)} ({curve['n']} images): clean {curve['clean_acc']:.1%}, {points}.")
        if norm == "Linf":
            _trained_at(axes, plan, runs[norm])
        if not runs[norm]:
            axes.text(0.5, 0.5, "not measured", transform=axes.transAxes, ha="center", color=PLAIN)
        axes.set_xlim(0, None)
        axes.grid(alpha=0.3)
        axes.yaxis.set_major_formatter(PercentFormatter(xmax=1, decimals=0))
    panels[0].set_ylabel("accuracy under attack")
    handles = {text: handle for axes in panels for handle, text in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside right upper", frameon=False)
    return Picture(figure=figure, description=" ".join(["Robust accuracy against the radius of the attack.", *said]))


def _trained_at(axes: Axes, plan: Plan, runs: list[str]) -> None:
    for eps in sorted({radius(DATASETS[plan.runs[run].spec["dataset"]].eps) for run in runs}):
        axes.axvline(255 * eps, color=PLAIN, linewidth=0.8, linestyle="--")


def describe(plan: Plan, run: str) -> str:
    """A Run in a legend."""
    spec = plan.runs[run].spec
    pruned = "" if spec.get("sparsity") is None else f", r = {spec['sparsity']:g}"
    weights = ", binary" if spec.get("precision") == "binary" else ""
    data = names.DATASETS.get(spec["dataset"], spec["dataset"])
    return f"{names.method(spec)}, {names.network(spec)}{weights}{pruned}, {data}, seed {spec['seed']}"


def read(run: str, norm: str, folder: Path) -> Mapping[str, Any]:
    """The curve of a Run, as `methods.evaluate curve` writes it."""
    path = folder / paths.security_curve(run, norm)
    curve = sealed.read(path)
    if missing := [key for key in NEEDED if key not in curve]:
        raise UserError(f"{path}: misses {', '.join(missing)}; it is no security curve: delete it and measure again")
    if curve["norm"] != norm:
        raise UserError(f"{path}: is a curve in {curve['norm']}, its name says {norm}; delete it and measure again with --norm {norm}")
    return curve
