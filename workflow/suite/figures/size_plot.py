"""Robust accuracy against the bytes that a network needs, for every method of the comparisons."""

import itertools
from dataclasses import dataclass
from pathlib import Path

import seaborn
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, PercentFormatter

from methods.core import paths
from methods.core.datasets import DATASETS
from workflow.suite.figures import style
from workflow.suite.figures.needs import compared
from workflow.suite.figures.style import OURS, PLAIN, Picture
from workflow.suite.planning.plan import Plan
from workflow.suite.results import names, size, stats
from workflow.suite.results.measure import measure

MARKERS = "osD^vPX*<>pH"


@dataclass(frozen=True, kw_only=True)
class Point:
    """A network of one method: kilobytes (measured, or counted), robust accuracy and its interval."""

    dataset: str
    method: str
    binary: bool
    kilobytes: float
    measured: bool
    accuracy: float
    interval: tuple[float, float]


def points_of(plan: Plan, folder: Path) -> list[Point]:
    """What is finished."""
    points = []
    for cell in compared(plan):
        item, spec = measure(plan, cell, folder), plan.runs[cell.runs[0]].spec
        if item.value is None:
            continue
        sizes = [size.of_run(run, folder) for run in cell.runs if (folder / paths.train_manifest(run)).is_file()]
        method = names.method(spec)
        points.append(
            Point(
                dataset=spec["dataset"],
                method=method,
                binary=spec.get("precision") == "binary",
                kilobytes=stats.mean([one.kilobytes for one in sizes]),
                measured=all(one.measured for one in sizes),
                accuracy=item.value,
                interval=item.interval,
            )
        )
    return points


def draw(plan: Plan, folder: Path, title: str, foot: str) -> Picture:
    """One panel per data set on which something is measured; a marker per method, filled for binary weights, open for full precision."""
    points = points_of(plan, folder)
    planned = list(dict.fromkeys(plan.runs[cell.runs[0]].spec["dataset"] for cell in compared(plan)))
    datasets = [name for name in planned if any(point.dataset == name for point in points)]
    methods = sorted({point.method for point in points}, key=lambda name: (not name.startswith("Ours"), name.lower()))
    others = iter(seaborn.color_palette("colorblind", len(methods)))
    colours = {name: OURS if name.startswith("Ours") else next(others) for name in methods}
    words = f"Bars: 95 % interval over test images. Size: {_measure(points)}."
    if waiting := [DATASETS[name].title for name in planned if name not in datasets]:
        words += f" Not measured yet: {', '.join(waiting)}."
    figure = style.sheet(9.2, 3.6, title, f"{foot}\n{words}")
    panels = figure.subplots(1, max(len(datasets), 1), squeeze=False)[0]
    for axes, dataset in zip(panels, datasets, strict=False):
        inside = [point for point in points if point.dataset == dataset]
        for point in sorted(inside, key=lambda point: point.method.startswith("Ours")):  # ours on top
            colour = colours[point.method]
            axes.vlines(point.kilobytes, *point.interval, color=colour, alpha=0.2, linewidth=0.8, zorder=1)
            fill = {"markerfacecolor": colour if point.binary else "white", "markeredgecolor": colour}
            marker = MARKERS[methods.index(point.method) % len(MARKERS)]
            axes.plot(point.kilobytes, point.accuracy, marker, markersize=5, clip_on=False, **fill)
        axes.set(title=DATASETS[dataset].title, xlabel="size in kilobytes (log)", ylim=(0, None))
        axes.yaxis.set_major_formatter(PercentFormatter(xmax=1, decimals=0))
        axes.grid(alpha=0.3)
        axes.set_xscale("log")
        sizes = [point.kilobytes for point in inside]
        narrow = max(sizes) < 50 * min(sizes)  # powers of ten alone would leave the axis nearly unlabelled
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if narrow else (1,)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
        axes.xaxis.set_minor_formatter(FuncFormatter(lambda *_: ""))
    if not datasets:
        panels[0].set(xticks=[], yticks=[])
        panels[0].text(0.5, 0.5, "nothing measured yet", transform=panels[0].transAxes, ha="center", color=PLAIN)
    panels[0].set_ylabel("robust accuracy")
    handles = []
    for name, marker in zip(methods, itertools.cycle(MARKERS), strict=False):
        handles.append(Line2D([], [], linestyle="", marker=marker, color=colours[name], label=name))
    for label, fill in (("binary weights", PLAIN), ("full precision", "white")):
        handles.append(Line2D([], [], linestyle="", marker="o", markeredgecolor=PLAIN, markerfacecolor=fill, label=label))
    figure.legend(handles=handles, loc="outside right upper", frameon=False)
    return Picture(figure=figure, description=_words(points))


def _measure(points: list[Point]) -> str:
    """What the sizes are."""
    counted = sorted({point.method for point in points if not point.measured}, key=str.lower)
    if not counted:
        return "bytes of the compact file"
    rest = f"counted for {', '.join(counted)} (not pruned, so not packed): positions and values of the kept weights, batch norms, biases"
    return rest if len(counted) == len({point.method for point in points}) else f"bytes of the compact file; {rest}"


def _words(points: list[Point]) -> str:
    said = [f"Robust accuracy against stored size (kilobytes, log) of {len(points)} networks, one panel per data set."]
    for dataset in dict.fromkeys(point.dataset for point in points):
        best = max((point for point in points if point.dataset == dataset), key=lambda point: point.accuracy)
        least = min((point for point in points if point.dataset == dataset), key=lambda point: point.kilobytes)
        said.append(
            f"{DATASETS[dataset].title}: best {best.method} with {best.accuracy:.1%} at {best.kilobytes:,.1f} kB; smallest {least.method}"
            f" with {least.accuracy:.1%} at {least.kilobytes:,.1f} kB."
        )
    return " ".join(said)
