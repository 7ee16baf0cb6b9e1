"""Robust accuracy over pruning rate and pruning strategy: our heat map beside the paper's (table sp_ratio)."""

from pathlib import Path

import numpy as np
import pandas as pd
import seaborn
from matplotlib.patches import Rectangle
from matplotlib.ticker import PercentFormatter

from workflow.suite.figures import style
from workflow.suite.figures.needs import RATIOS
from workflow.suite.figures.style import Picture
from workflow.suite.planning.plan import Plan
from workflow.suite.results.measure import measure_table
from workflow.suite.tables import marks


def draw(plan: Plan, folder: Path, title: str, foot: str) -> Picture:
    """The best of each column in bold; what is not measured is hatched. Numbers that can be compared have one colour scale; those of a
    reduced scale have their own, since a common one would invite a comparison that means nothing and hide the pattern that can be seen."""
    shape = plan.table(RATIOS)
    ours = {key: item.value for key, item in measure_table(plan, RATIOS, folder).items()}
    cells = {(cell.row, cell.column): cell.reported.value for cell in plan.cells_of(RATIOS)}
    # The paper's numbers are in percent already; both maps are drawn in fractions and labelled in percent.
    paper = {key: None if value is None else value / 100 for key, value in cells.items()}
    common = plan.scale.comparable
    said = "One colour scale." if common else "Each map has its own colour scale: patterns can be compared, colours cannot."
    figure = style.sheet(9.2, 4.0, title, f"{foot}\n{said} Bold: the best of a column. Hatched: not measured.")
    panels = figure.subplots(1, 2, sharey=True)
    both = (ours, paper)
    for axes, name, values in zip(panels, (f"ours, scale {plan.scale.name}", "paper"), both, strict=True):
        highest = max((value for shown in (both if common else (values,)) for value in shown.values() if value is not None), default=1)
        best = marks.best(shape, {key: value for key, value in values.items() if value is not None})
        grid = pd.DataFrame([[values[row.id, column.id] for column in shape.columns] for row in shape.rows], dtype=float)
        axes.set_facecolor("#e5e7eb")
        look = {"cmap": "viridis", "vmin": 0, "vmax": highest, "linewidths": 0.5, "cbar": False}
        seaborn.heatmap(grid, ax=axes, annot=True, fmt=".1%", annot_kws={"fontsize": 6.5}, **look)
        # A bold number is the best of its column, by the same rule as in the tables.
        shown = [(row.id, column.id) for row in shape.rows for column in shape.columns if values[row.id, column.id] is not None]
        for text, key in zip(axes.texts, shown, strict=True):
            text.set_text(text.get_text().rstrip("%"))
            text.set_fontweight("bold" if key in best else "normal")
        for y, x in zip(*np.nonzero(grid.isna().to_numpy()), strict=True):
            axes.add_patch(Rectangle((x, y), 1, 1, fill=False, hatch="////", edgecolor="#9ca3af", linewidth=0))
        axes.set_title(name + (" (%)" if shown else ": nothing measured yet"))
        axes.set_xticklabels([column.head[-1].removeprefix("r = ") for column in shape.columns], rotation=0)
        axes.set(xlabel="pruning rate r")
        axes.tick_params(length=0)
        if shown and not (common and axes is panels[0]):
            bar = figure.colorbar(axes.collections[0], ax=axes, shrink=0.8, pad=0.02, format=PercentFormatter(xmax=1, decimals=0))
            bar.outline.set_visible(False)
    panels[0].set_yticklabels([row.labels[-1] for row in shape.rows], rotation=0)
    measured = [value for value in ours.values() if value is not None]
    pairs = [(ours[key], paper[key]) for key in ours if ours[key] is not None and paper[key] is not None]
    return Picture(
        figure=figure,
        description="Robust accuracy by pruning rate (across) and pruning strategy (down), ours left and the paper's right,"
        f" {'on one colour scale' if common else 'each on its own colour scale'}. {len(measured)} of {len(ours)} cells are"
        f" measured.{_agreement(pairs)}",
    )


def _agreement(pairs: list[tuple[float, float]]) -> str:
    """Rank correlation of the two maps, which a reduced scale may keep although no number agrees."""
    if len(pairs) < 3:
        return ""
    ranks = pd.DataFrame(pairs).rank()
    correlation = ranks[0].corr(ranks[1])
    return "" if np.isnan(correlation) else f" Rank correlation of ours and the paper's: {correlation:.2f}."
