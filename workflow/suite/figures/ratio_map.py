"""Robust accuracy over pruning rate and pruning strategy: our heat map beside the paper's (table sp_ratio)."""

from pathlib import Path

import numpy as np
import pandas as pd
import seaborn

from workflow.suite.figures import style
from workflow.suite.figures.needs import RATIOS
from workflow.suite.figures.style import Picture
from workflow.suite.planning.plan import Plan
from workflow.suite.results.measure import measure_table
from workflow.suite.tables import marks


def draw(plan: Plan, folder: Path, title: str, foot: str) -> Picture:
    """Both maps on one colour scale; the best of each column in bold; what is not measured stays grey."""
    shape = plan.table(RATIOS)
    ours = {key: item.value for key, item in measure_table(plan, RATIOS, folder).items()}
    cells = {(cell.row, cell.column): cell.reported.value for cell in plan.cells_of(RATIOS)}
    # The paper's numbers are in percent already; both maps are drawn in fractions and labelled in percent.
    paper = {key: None if value is None else value / 100 for key, value in cells.items()}
    figure = style.sheet(9.2, 3.8, title, foot)
    panels = figure.subplots(1, 2, sharey=True)
    highest = max((value for values in (ours, paper) for value in values.values() if value is not None), default=1)
    for axes, name, values in ((panels[0], f"ours, scale {plan.scale.name}", ours), (panels[1], "paper", paper)):
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
        axes.set_title(name + (" (%)" if shown else ": nothing measured yet"))
        axes.set_xticklabels([column.head[-1].removeprefix("r = ") for column in shape.columns], rotation=0)
        axes.set(xlabel="pruning rate r")
        axes.tick_params(length=0)
    panels[0].set_yticklabels([row.labels[-1] for row in shape.rows], rotation=0)
    measured = [value for value in ours.values() if value is not None]
    pairs = [(ours[key], paper[key]) for key in ours if ours[key] is not None and paper[key] is not None]
    return Picture(
        figure=figure,
        description=f"Robust accuracy by pruning rate (across) and pruning strategy (down), ours left and the paper's right, on one colour"
        f" scale. {len(measured)} of {len(ours)} cells are measured.{_agreement(pairs)}",
    )


def _agreement(pairs: list[tuple[float, float]]) -> str:
    """Rank correlation of the two maps, which a reduced scale may keep although no number agrees."""
    if len(pairs) < 3:
        return ""
    ranks = pd.DataFrame(pairs).rank()
    correlation = ranks[0].corr(ranks[1])
    return "" if np.isnan(correlation) else f" Rank correlation of ours and the paper's: {correlation:.2f}."
