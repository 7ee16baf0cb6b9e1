"""The results that the README opens with: the main comparison on CIFAR-10 as far as it is measured, and the map of rates and strategies.

They stand between two marks, so that everything around them stays as a person wrote it.
"""

from __future__ import annotations

from pathlib import Path

from tabulate import tabulate

from methods.core import files, paths
from methods.core.errors import UserError
from workflow.suite.planning.plan import Plan
from workflow.suite.results.measure import Measured, measure_table
from workflow.suite.tables import caption

README = Path("README.md")
BEGIN, END = "<!-- results -->", "<!-- end of results -->"
TABLE, COLUMNS = "main_comparison", {"cifar10-fp": "full precision", "cifar10-binary": "binary"}
GRID, MAP = "sp_ratio", "ratio_map"


def block(plan: Plan, folder: Path) -> str:
    """What stands between the marks."""
    measured, table = measure_table(plan, TABLE, folder), plan.tables[TABLE]
    lines = []
    for row in table.rows:
        cells = [measured[row.id, column] for column in COLUMNS]
        if any(cell.values for cell in cells):
            lines.append([" ".join(row.labels), *map(_shown, cells)])
    parts = [f"**{caption.comparability(plan)}**"]
    if not lines:
        return "\n\n".join([*parts, "Nothing is measured yet."])
    seeds = max(len(cell.values) for cell in measured.values())
    parts.append(
        f"Robust accuracy on CIFAR-10 under the standard AutoAttack, ours with its 95 % interval over {_images(measured)} test images"
        f"{' (mean of so many seeds)' if seeds > 1 else ''} / the paper's; labels are the paper's:"
    )
    parts.append(tabulate(lines, ["", *COLUMNS.values()], tablefmt="pipe", disable_numparse=True))
    missing = sum(cell.status in ("not run", "partial") for key, cell in measured.items() if key[1] in COLUMNS)
    if missing:
        parts.append(f"{missing} of these cells wait for Runs that are not trained yet.")
    grid = measure_table(plan, GRID, folder)
    if done := sum(bool(cell.values) for cell in grid.values()):
        parts.append(f"![Robust accuracy by pruning rate and strategy]({paths.figure(plan.scale.name, MAP, 'png')})")
        parts.append(f"Pruning rate r and strategy p, ours beside the paper's; {done} of {len(grid)} cells are measured.")
    return "\n\n".join(parts)


def write(plan: Plan, folder: Path = Path()) -> Path:
    """Put the block in its place in the README; returns its path."""
    path = folder / README
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise UserError(f"{path}: the marks '{BEGIN}' and '{END}' do not stand there once each; put them around the place of the results")
    before, rest = text.split(BEGIN)
    files.write(path, f"{before}{BEGIN}\n{block(plan, folder)}\n{END}{rest.split(END)[1]}")
    return path


def _shown(cell: Measured) -> str:
    """Ours / the paper's."""
    printed = cell.cell.reported.value
    theirs = f"{printed:.2f}" if printed is not None else "-"
    if cell.status == "not applicable":
        return "-"
    if cell.value is None or cell.interval is None:
        return f"· / {theirs}"
    low, high = cell.interval
    several = f" (n = {len(cell.values)})" if len(cell.values) > 1 else ""
    return f"{100 * cell.value:.1f} [{100 * low:.1f}, {100 * high:.1f}]{several} / {theirs}"


def _images(measured: dict[tuple[str, str], Measured]) -> str:
    counts = sorted({cell.n for key, cell in measured.items() if key[1] in COLUMNS and cell.n is not None})
    return " or ".join(map(str, counts))
