"""Learning curves of every training of a table: a panel per row, a line per column and seed."""

from math import ceil
from pathlib import Path

import seaborn
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, PercentFormatter

from methods.core import paths
from methods.core.datasets import DATASETS
from workflow.suite.figures import style
from workflow.suite.figures.style import PLAIN, Picture
from workflow.suite.planning.plan import Plan
from workflow.suite.results import history

ACROSS, WIDTH, HEIGHT = 5, 1.85, 1.3  # panels in a row, and inches of each
DASHES = ("-", "--", ":", "-.")
LETTERS = 34  # of a panel's title


def draw(plan: Plan, folder: Path, title: str, foot: str, table: str) -> Picture:
    """Robust accuracy on the validation images by epoch. Each panel has its own number of epochs, all have the same accuracies. Of a
    method of several phases the last is shown."""
    shape = plan.table(table)
    looks = dict(zip([column.id for column in shape.columns], _looks([column.head for column in shape.columns]), strict=True))
    rows = [row for row in shape.rows if any(plan.cells[f"{table}.{row.id}.{column.id}"].runs for column in shape.columns)]
    down = ceil(len(rows) / ACROSS)
    words = f"Dotted: chance. {'Of methods with phases the last one. ' if any(_phased(plan, table)) else ''}Every seed is a line."
    figure = style.sheet(ACROSS * WIDTH, down * HEIGHT + 1.1, title, f"{foot}\n{words}")
    panels = figure.subplots(down, ACROSS, sharey=True, squeeze=False)
    ends, trained, planned = {}, 0, 0
    for axes, row in zip(panels.flat, rows, strict=False):
        wanted = {column.id: plan.cells[f"{table}.{row.id}.{column.id}"].runs for column in shape.columns}
        present = {column: [run for run in runs if (folder / paths.train_manifest(run)).is_file()] for column, runs in wanted.items()}
        for column, runs in present.items():
            last = []
            for run in runs:
                records = history.read(run, folder)
                colour, dash = looks[column]
                few = {"marker": ".", "markersize": 3} if len(records) <= 3 else {}
                epochs = [record["epoch"] + 1 for record in records]
                axes.plot(epochs, [record["val_robust"] for record in records], dash, color=colour, linewidth=0.9, **few)
                axes.axhline(1 / DATASETS[plan.runs[run].spec["dataset"]].classes, color=PLAIN, linewidth=0.5, linestyle=":", zorder=0)
                last.append(records[-1]["val_robust"])
            if last:
                ends[row.id, column] = sum(last) / len(last)
        have, want = (len({run for runs in group.values() for run in runs}) for group in (present, wanted))
        trained, planned = trained + have, planned + want
        axes.set_title(_short(", ".join(row.labels)), fontsize=6)
        axes.grid(axis="y", alpha=0.4)
        axes.xaxis.set_major_locator(MaxNLocator(4, integer=True, min_n_ticks=1))
        axes.tick_params(labelsize=6)
        if not have:
            axes.text(0.5, 0.5, "not trained yet", transform=axes.transAxes, ha="center", va="center", color=PLAIN, fontsize=6)
            axes.set_xticks([])
        elif have < want:
            count = axes.text(0.98, 0.04, f"{have} of {want}", transform=axes.transAxes, ha="right", color=PLAIN, fontsize=6)
            count.set_bbox({"facecolor": "white", "alpha": 0.8, "edgecolor": "none", "pad": 1})  # lines may pass behind it
    for axes in list(panels.flat)[len(rows) :]:
        axes.set_axis_off()
    panels[0, 0].yaxis.set_major_formatter(PercentFormatter(xmax=1, decimals=0))
    panels[0, 0].set_ylim(0, None)
    figure.supylabel("robust accuracy, validation images", fontsize=7)
    drawn = {column for _, column in ends} or set(looks)
    handles = [
        Line2D([], [], color=colour, linestyle=dash, label=" ".join(column.head))
        for column, (colour, dash) in zip(shape.columns, looks.values(), strict=True)
        if column.id in drawn
    ]
    figure.legend(handles=handles, loc="outside upper right", ncols=min(len(handles), 7), frameon=False, fontsize=6)
    best = max(ends, key=lambda key: ends[key], default=None)
    said = f" The highest last epoch: {ends[best]:.1%} ({best[0]}, {best[1]})." if best else ""
    return Picture(
        figure=figure,
        description=f"Robust accuracy on the validation images by epoch, a panel per row of the table '{shape.title}', a line per column"
        f" and seed. {trained} of {planned} trainings are finished.{said}",
    )


def _looks(heads: list[tuple[str, ...]]) -> list[tuple[object, str]]:
    """Colour and dash of each column: columns of one group share a colour; a scale of numbers is a scale of colours."""
    groups = list(dict.fromkeys(head[0] for head in heads))
    single = all(len(head) == 1 for head in heads)
    palette = seaborn.color_palette("viridis", len(groups) + 1) if single else seaborn.color_palette("colorblind", len(groups))
    place: dict[str, int] = {}
    looks = []
    for head in heads:
        place[head[0]] = place.get(head[0], -1) + 1
        looks.append((palette[groups.index(head[0])], DASHES[place[head[0]] % len(DASHES)]))
    return looks


def _phased(plan: Plan, table: str) -> list[bool]:
    return [plan.runs[run].parent is not None for run in plan.final_runs(table)]


def _short(text: str) -> str:
    return text if len(text) <= LETTERS else text[: LETTERS - 1] + "…"
