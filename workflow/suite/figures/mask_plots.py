"""Figures of which weights our pruned network kept (paper: fig:mask_dist, fig:mask distribution 2, fig:mask 2 layers, fig:mask_full)."""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap

from methods.core import paths
from methods.core.errors import UserError
from workflow.suite.figures import needs, style
from workflow.suite.figures.style import EMPTY, OTHER, OURS, PLAIN, Picture
from workflow.suite.jobs import damage
from workflow.suite.paper.theory import kernel_share
from workflow.suite.planning.plan import Plan
from workflow.suite.results import masks
from workflow.suite.results.masks import Pair, read_pair

BAR = ListedColormap(["white", OTHER])
DOTS = ListedColormap(["white", OTHER, EMPTY])


def distribution(plan: Plan, folder: Path, title: str, foot: str) -> Picture:
    """Kept weights per channel by rank, beside random pruning of the same layer to the same number."""
    pair, foot = _subject(plan, folder, foot)
    figure = style.sheet(9.2, 2.6, title, f"{foot}, layers: {pair.place}.")
    panels, empty = figure.subplots(1, 4), {}
    for place, axes in enumerate(panels):
        number, side = 1 + place // 2, ("input", "output")[place % 2]
        mask, name = (pair.first, pair.second)[place // 2], f"layer {number} {side} channels"
        random = masks.random_reference(mask.shape, int(mask.sum()))
        mean, sd = random.inputs if side == "input" else random.outputs
        counts = masks.per_input(mask) if side == "input" else masks.per_output(mask)
        ranks, empty[name] = np.arange(len(counts)), int((counts == 0).sum())
        axes.fill_between(ranks, mean - sd, mean + sd, color=OTHER, alpha=0.2, linewidth=0)
        axes.plot(ranks, mean, color=OTHER, label=f"random, mean of {masks.SIMULATIONS}")
        axes.plot(ranks, masks.falling(counts), color=OURS, drawstyle="steps-mid", label="ours")
        axes.set(title=f"({'abcd'[place]}) {name}", xlabel="channel rank", ylim=(0, None))
        axes.margins(x=0.01)
        axes.text(0.97, 0.6, f"empty: {empty[name]} of {len(counts)}", transform=axes.transAxes, ha="right", color=OURS, fontsize=7)
    panels[0].set_ylabel("kept weights per channel")
    panels[0].legend(frameon=False, loc="upper right")
    said = ", ".join(f"{count} {name}" for name, count in empty.items())
    return Picture(
        figure=figure,
        description=f"Kept weights per channel, largest first, of two consecutive layers: {pair.place}. Red: our mask. Blue: random pruning"
        f" of the layer to the same number of weights, mean and standard deviation by rank over {masks.SIMULATIONS} draws. Empty: {said}.",
    )


def kernels(plan: Plan, folder: Path, title: str, foot: str) -> Picture:
    """How many kernels keep k of their nine weights, beside the exact expectation of random pruning."""
    pair, foot = _subject(plan, folder, foot)
    mask = pair.second
    counts, weights, kept = masks.per_kernel(mask), mask.size, int(mask.sum())
    total = mask.shape[0] * mask.shape[1]
    expected = [total * kernel_share(k, weights=weights, kept=kept) for k in range(len(counts))]
    figure = style.sheet(5.2, 3.2, title, f"{foot}, layer: second of the {pair.place}.")
    axes, places, floor = figure.subplots(), np.arange(len(counts)), 0.05
    axes.bar(places - 0.2, counts, 0.4, color=OURS, label="ours")
    axes.bar(places + 0.2, [value if value > floor else 0 for value in expected], 0.4, color=OTHER, label="random, expected")
    for place, count, other in zip(places, counts, expected, strict=True):
        at = (place - 0.2, max(count, floor)) if count >= other or count < floor else (place, other)
        axes.annotate(f"{count:,}", at, (0, 2), textcoords="offset points", ha="center", color=OURS, fontsize=6)
    axes.set(yscale="log", ylim=(floor, total * 4), xticks=places, xlabel="weights kept in a 3x3 kernel", ylabel="kernels (log)")
    axes.legend(frameon=False)
    many, full = int(counts[4:].sum()), int(counts[9])
    return Picture(
        figure=figure,
        description=f"Kernels by the number of weights they keep (log), second layer of the {pair.place}. {many} kernels keep more than"
        f" three weights and {full} keep all nine; random pruning to the same number is expected to leave {sum(expected[4:]):.3f} with more"
        " than three.",
    )


def alignment(plan: Plan, folder: Path, title: str, foot: str) -> Picture:
    """Both masks with the shared channels in the same rows; bars between them say which channels are used at all."""
    pair, foot = _subject(plan, folder, foot)
    left, right = tall(pair.first), tall(pair.second.transpose(1, 0, 2, 3))
    overlap = masks.overlap(pair)
    said = (
        f"{overlap.empty_outputs} outputs of layer 1 and {overlap.empty_inputs} inputs of layer 2 are empty (white in the bars),"
        f" {overlap.both} in both: Jaccard index {overlap.jaccard:.2f}, by chance {overlap.by_chance:.2f}."
    )
    figure = style.sheet(9.2, 5.2, title, f"{said}\n{foot}, layers: {pair.place}.")
    panels = figure.subplots(1, 4, width_ratios=(20, 1, 1, 20))
    for axes, picture in ((panels[0], left), (panels[3], right)):
        axes.imshow(picture, cmap=BAR, interpolation="none", aspect="auto", vmin=0, vmax=1)
    for axes, used in ((panels[1], masks.per_output(pair.first) > 0), (panels[2], masks.per_input(pair.second) > 0)):
        axes.imshow(used[:, None], cmap=BAR, interpolation="none", aspect="auto", vmin=0, vmax=1)
    panels[0].set(title="layer 1", xlabel="input channel", ylabel="output channel (= input channel of layer 2)")
    panels[3].set(title="layer 2", xlabel="output channel")
    outputs, inputs = pair.first.shape[:2]
    _channel_ticks(panels[0], columns=inputs, rows=outputs)
    _channel_ticks(panels[3], columns=pair.second.shape[0], rows=None)
    for axes, name in zip(panels[1:3], ("out", "in"), strict=True):
        axes.set(xticks=[], yticks=[])
        axes.set_title(name, loc="center", fontsize=7)
    return Picture(
        figure=figure,
        description=f"Masks of two consecutive layers ({pair.place}), a row of kernels per shared channel. Bars in the middle: blue where"
        f" the channel is used, white where it is empty. {said}",
    )


def full(plan: Plan, folder: Path, title: str, foot: str) -> Picture:
    """One mask as a rectangle of kernels; columns of inputs that are never read in orange."""
    pair, foot = _subject(plan, folder, foot)
    mask = pair.second
    unread = masks.per_input(mask) == 0
    picture = np.where(np.repeat(unread, 3)[None, :], 2, tall(mask).astype(int))
    figure = style.sheet(5.6, 6.2, title, f"{foot}, layer: second of the {pair.place}.")
    bar, axes = figure.subplots(2, 1, height_ratios=(1, 30))
    bar.imshow(~unread[None, :], cmap=BAR, interpolation="none", aspect="auto", vmin=0, vmax=1)
    bar.set(xticks=[], yticks=[])
    axes.imshow(picture, cmap=DOTS, interpolation="none", aspect="auto", vmin=0, vmax=2)
    axes.set(xlabel="input channel", ylabel="output channel")
    _channel_ticks(axes, columns=mask.shape[1], rows=mask.shape[0])
    unused = int((masks.per_output(mask) == 0).sum())
    said = f"{int(mask.sum()):,} of {mask.size:,} weights kept; {int(unread.sum())} of {len(unread)} input channels are empty (orange)"
    bar.set_title(said, fontsize=7, color=PLAIN)
    return Picture(
        figure=figure,
        description=f"Mask of one layer, second of the {pair.place}: {said}, and {unused} of {mask.shape[0]} output channels. Kept weights"
        " are blue; the bar on top is white over empty input channels.",
    )


def _subject(plan: Plan, folder: Path, foot: str) -> tuple[Pair, str]:
    """The masks that are shown, and the line below the figure with the Run that they are of."""
    run = needs.subject(plan)
    if not (folder / paths.train_manifest(run)).is_file():
        raise UserError(f"{folder / paths.train_manifest(run)}: is not there; this figure shows a Run that is not trained yet")
    return read_pair(damage.checked_model(run, folder)), f"{foot}\nRun {plan.runs[run].id}"


def tall(mask: np.ndarray) -> np.ndarray:
    """(a, b, 3, 3) as a picture of 3a rows and 3b columns: kernels side by side."""
    a, b, height, width = mask.shape
    return mask.transpose(0, 2, 1, 3).reshape(a * height, b * width)


def _channel_ticks(axes: Axes, *, columns: int, rows: int | None) -> None:
    """Ticks that count channels where a channel is three pixels wide."""
    for axis, channels in ((axes.xaxis, columns), (axes.yaxis, rows)):
        marks = [] if channels is None else [0, channels // 4, channels // 2, 3 * channels // 4, channels - 1]
        axis.set_ticks([3 * mark + 1 for mark in marks], [str(mark) for mark in marks])
