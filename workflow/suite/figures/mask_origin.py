"""Is the structure of a mask learned, or there from the start: empty channels before training, after the first epoch, in the end."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.ticker import MaxNLocator, PercentFormatter

from methods.core import paths, sealed
from methods.core.errors import UserError
from workflow.suite.figures import needs, style
from workflow.suite.figures.style import EMPTY, OTHER, OURS, PLAIN, Picture
from workflow.suite.paper.theory import empty_channel_share
from workflow.suite.planning.plan import Plan

MOMENTS = {"start": ("before training", PLAIN, "x"), "first": ("after the first epoch", EMPTY, "s"), "last": ("in the end", OURS, "o")}
SIDES = ("inputs", "outputs")
COUNTS = ("pruned", "without", "empty", "empty_without")


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Per layer: weights kept per channel at each moment, the weights that the last mask shares with the earlier ones, and how many of the
    pruned weights have no gradient."""

    layers: tuple[str, ...]
    counts: dict[str, dict[str, list[np.ndarray]]]  # side -> moment -> counts of each layer
    kept: np.ndarray
    sizes: np.ndarray
    shared: dict[str, np.ndarray]
    gradients: dict[str, dict[str, np.ndarray]]  # moment -> pruned, without (a gradient), empty (in a channel that is), empty_without

    def empty(self, side: str, moment: str) -> np.ndarray:
        """Share of empty channels, by layer."""
        return np.array([(counts == 0).mean() for counts in self.counts[side][moment]])

    def expected(self, side: str) -> np.ndarray:
        """The share that random pruning of each layer to as many weights leaves empty on average; exact."""
        lines = zip(self.sizes.tolist(), self.kept.tolist(), self.counts[side]["last"], strict=True)
        return np.array([_left_empty(size // len(counts), size, kept) for size, kept, counts in lines])

    def already(self, side: str, moment: str) -> float:
        """Of the channels that are empty in the end, the share that was empty then; not a number where none is."""
        last, then = (np.concatenate(self.counts[side][key]) == 0 for key in ("last", moment))
        return float(then[last].mean()) if last.any() else float("nan")

    def whole(self, side: str, moment: str) -> float:
        """Share of empty channels of the whole network."""
        return float((np.concatenate(self.counts[side][moment]) == 0).mean())

    def without_gradient(self, moment: str) -> np.ndarray:
        """Share of pruned weights without a gradient, by layer; not a number where none is pruned."""
        counts = self.gradients[moment]
        return np.divide(counts["without"], counts["pruned"], out=np.full(len(self.layers), np.nan), where=counts["pruned"] > 0)

    def of_all(self, moment: str, part: str, whole: str) -> float:
        """One of the counts of `gradients` as a share of another, over the whole network."""
        counts = self.gradients[moment]
        return float(counts[part].sum() / counts[whole].sum()) if counts[whole].sum() else float("nan")


def _left_empty(channel: int, size: int, kept: int) -> float:
    return empty_channel_share(channel_weights=channel, weights=size, kept=kept) if kept <= size - channel else 0.0


def read(path: Path, sizes: dict[str, int]) -> Origin:
    """What `methods.first_epoch` wrote of a network with layers of these sizes, in their order."""
    value: dict[str, Any] = sealed.read(path)
    if "gradients" not in value:
        raise UserError(f"{path}: an earlier version made it, which did not look at gradients; delete it and make it again")
    moments, layers = value["moments"], tuple(sizes)
    counts = {side: {key: [np.array(moments[key][layer][side]) for layer in layers] for key in MOMENTS} for side in SIDES}
    return Origin(
        layers=layers,
        counts=counts,
        kept=np.array([int(item.sum()) for item in counts["inputs"]["last"]]),
        sizes=np.array([sizes[layer] for layer in layers]),
        shared={key: np.array([value["kept_in_both"][key][layer] for layer in layers]) for key in ("start", "first")},
        gradients={
            key: {count: np.array([value["gradients"][key][layer][count] for layer in layers]) for count in COUNTS} for key in MOMENTS
        },
    )


def draw(plan: Plan, folder: Path, title: str, foot: str) -> Picture:
    """Empty input and output channels by layer at three moments, beside random pruning; how much of the last mask was there; and which
    pruned weights have no gradient that could bring them back."""
    run = needs.subject(plan)
    path = folder / paths.first_epoch(run)
    if not path.is_file():
        raise UserError(f"{path}: is not there; `python -m methods.first_epoch --run {paths.run_folder(run)} --out {path}` makes it")
    origin = read(path, layer_sizes(plan.runs[run].spec))
    said = _words(origin)
    figure = style.sheet(9.2, 5.6, title, f"{said}\n{foot}\nRun {plan.runs[run].id}; the first epoch was repeated from its spec.")
    panels, places = figure.subplots(2, 2).flatten(), np.arange(len(origin.layers))
    for axes, side in zip(panels, SIDES, strict=False):
        axes.plot(places, origin.expected(side), color=OTHER, linewidth=1, label="random pruning, expected")
        for moment, (label, colour, marker) in MOMENTS.items():
            axes.plot(places, origin.empty(side, moment), marker, color=colour, markersize=3.5, linewidth=0, label=label, clip_on=False)
        axes.set_title(f"({'ab'[SIDES.index(side)]}) empty {side[:-1]} channels")
    panels[2].plot(places, origin.kept / origin.sizes, color=OTHER, linewidth=1, label="by chance")
    for moment, shared in origin.shared.items():
        label, colour, marker = MOMENTS[moment]
        panels[2].plot(places, shared / np.maximum(origin.kept, 1), marker, color=colour, markersize=3.5, linewidth=0, label=label)
    panels[2].set_title("(c) weights of the last mask kept then")
    for moment, (label, colour, marker) in MOMENTS.items():
        axes, shares = panels[3], origin.without_gradient(moment)
        axes.plot(places, shares, marker, color=colour, markersize=3.5, linewidth=0, label=label, clip_on=False)
    panels[3].set_title("(d) pruned weights without a gradient")
    for axes in panels:
        axes.set(xlabel="layer, from the input to the classifier", xlim=(-1, len(places)), ylim=(0, 1.02))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.yaxis.set_major_formatter(PercentFormatter(xmax=1, decimals=0))
        axes.grid(axis="y", alpha=0.4)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=4, frameon=False)
    return Picture(figure=figure, description=f"Empty channels of every layer of one pruned network, and overlap of its masks. {said}")


def layer_sizes(spec: dict[str, Any]) -> dict[str, int]:
    """Convolution -> number of its weights."""
    from workflow.suite.results.size import shapes_of

    return {name.removesuffix(".weight"): int(np.prod(shape)) for name, shape in shapes_of(spec).items() if name.endswith(".weight")}


def _words(origin: Origin) -> str:
    lines = []
    for side in SIDES:
        shares = ", ".join(f"{origin.whole(side, moment):.1%} {label}" for moment, (label, _, _) in MOMENTS.items())
        channels = np.array([len(counts) for counts in origin.counts[side]["last"]])
        random = float((origin.expected(side) * channels).sum() / channels.sum())
        already = origin.already(side, "first")
        rest = "" if np.isnan(already) else f"; of those empty in the end {already:.0%} were empty after the first epoch"
        lines.append(f"Empty {side[:-1]} channels: {random:.1%} by random pruning, {shares}{rest}.")
    total = origin.kept.sum()
    kept = " and ".join(f"{shared.sum() / total:.0%} {MOMENTS[moment][0]}" for moment, shared in origin.shared.items())
    without = ", ".join(f"{origin.of_all(moment, 'without', 'pruned'):.1%} {label}" for moment, (label, _, _) in MOMENTS.items())
    in_empty = origin.of_all("last", "empty_without", "empty")
    rest = "" if np.isnan(in_empty) else f"; in the end {in_empty:.1%} of those in empty channels"
    return " ".join(
        [
            *lines,
            f"Of the weights that are kept in the end, {kept} were kept.",
            f"Of the pruned weights, these have a gradient of exactly zero: {without}{rest}.",
        ]
    )
