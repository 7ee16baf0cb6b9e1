"""Learning curves of our method under adaptive pruning (paper: fig:stability), from the history that every training writes."""

from pathlib import Path

from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, PercentFormatter

from methods.core import paths
from workflow.suite.figures import needs, style
from workflow.suite.figures.style import OTHER, OURS, PLAIN, Picture
from workflow.suite.planning.plan import Plan
from workflow.suite.results import history

FEW = 20
LINES = (
    ("val_clean", "validation, clean", OTHER, "-", "o"),
    ("val_robust", "validation, under attack", OURS, "-", "d"),
    ("train_acc", "training, under attack", PLAIN, "--", "x"),
)


def draw(plan: Plan, folder: Path, title: str, foot: str) -> Picture:
    """Two rows of four panels: r = 0.99 above, r = 0.5 below; p grows to the right. Every seed is a line."""
    shape, runs = plan.table(needs.RATIOS), needs.curve_runs(plan)
    heads = {column.id: column.head[-1] for column in shape.columns}
    figure = style.sheet(9.2, 4.4, title, foot)
    panels = figure.subplots(2, 4, sharex=True, sharey=True)
    last, longest, highest = {}, 1, 0.1
    for axes, letter, (key, names) in zip(panels.flat, "abcdefgh", runs.items(), strict=True):
        column, row = key
        name = f"{heads[column]}, {shape.by_id[row].labels[-1]}"
        axes.set_title(f"({letter}) {name}")
        axes.grid(axis="y", alpha=0.4)
        histories = [history.read(run, folder) for run in names if (folder / paths.train_manifest(run)).is_file()]
        for records in histories:
            epochs = [record["epoch"] + 1 for record in records]
            for metric, _, colour, dash, marker in LINES:
                # A handful of epochs would be an invisible line: mark the points.
                points = {"marker": marker, "markersize": 5, "clip_on": False} if len(epochs) <= FEW else {}
                axes.plot(epochs, [record[metric] for record in records], dash, color=colour, linewidth=1, **points)
            longest = max(longest, len(epochs))
            highest = max(highest, *(record[metric] for record in records for metric, *_ in LINES))
        if histories:
            last[name] = sum(records[-1]["val_robust"] for records in histories) / len(histories)
        else:
            axes.text(0.5, 0.5, "not trained yet", transform=axes.transAxes, ha="center", color=PLAIN)
    for axes in panels[-1]:
        axes.set_xlabel("epoch")
        axes.xaxis.set_major_locator(MaxNLocator(4, integer=True, min_n_ticks=1))
    for axes in panels[:, 0]:
        axes.set_ylabel("accuracy")
        axes.yaxis.set_major_formatter(PercentFormatter(xmax=1, decimals=0))
    panels[0, 0].set(xlim=(0, longest + 1 if longest <= FEW else longest), ylim=(0, min(1.05 * highest, 1)))
    handles = [
        Line2D([], [], linestyle=dash, color=colour, marker=marker if longest <= FEW else None, label=label)
        for _, label, colour, dash, marker in LINES
    ]
    figure.legend(handles=handles, loc="outside upper right", ncols=3, frameon=False)
    ends = "; ".join(f"{name}: {value:.1%}" for name, value in last.items())
    return Picture(
        figure=figure,
        description="Accuracy by epoch of eight trainings of our method: under the training attack, and on the validation split clean and"
        f" under PGD. Robust validation accuracy of the last epoch: {ends or 'nothing is trained yet'}.",
    )
