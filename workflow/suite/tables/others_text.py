"""What others measured, as text."""

from itertools import groupby
from pathlib import Path

from tabulate import tabulate

from workflow.suite.planning.config import shown
from workflow.suite.planning.others import Other
from workflow.suite.planning.plan import Plan
from workflow.suite.results import others

HEADS = ("what", "clean", "robust", "comparable", "cell", "paper", "apart")
HOW = "differs in"
RULE = (
    "`apart` is theirs minus the paper's, in points. Of a close entry (method, architecture and attack agree) that is more than"
    f" {others.POINTS:g} points away, rendered tables have a footnote. An entry without a cell is of a network that no table here has."
)


def of_plan(plan: Plan, table: str | None = None) -> str:
    """File by file; given a table, only entries that are about a cell of it."""
    cells = plan.cells_of(table) if table else list(plan.cells.values())
    about: dict[int, list[list[str]]] = {id(other): [] for other in plan.others}
    for cell in cells:
        for other in others.of_cell(plan, cell):
            apart = others.apart(cell, other)
            paper = "" if cell.reported.value is None else f"{cell.reported.value:.2f}"
            about[id(other)].append([cell.address, paper, "" if apart is None else f"{apart:+.2f}"])
    chosen = [other for other in plan.others if about[id(other)] or not table]
    departing = sum(bool(others.departing(plan, cell)) for cell in cells)
    beside = sum(bool(about[id(other)]) for other in chosen)
    summary = f"{len(chosen)} numbers of others, {beside} of them about cells; {departing} cells of the paper depart from a close one."
    parts = [summary, RULE]
    for path, group in groupby(chosen, key=lambda other: other.path):
        entries = list(group)
        parts.append(_file(path, entries, {id(other): about[id(other)] for other in entries}))
    return "\n\n".join(parts)


def _file(path: Path, entries: list[Other], about: dict[int, list[list[str]]]) -> str:
    """The entries of one file; in what they differ from the paper's stands above them where it is the same for all."""
    hows = {other.how for other in entries}
    first = entries[0]
    heads = [*HEADS, HOW] if len(hows) > 1 else HEADS
    lines = [line[: len(heads)] for other in entries for line in _lines(other, about[id(other)])]
    words = [f"{shown(path)}: {first.who}", first.where, first.settings, *([f"{HOW}: {first.how}"] if len(hows) == 1 else [])]
    return "\n".join(words) + "\n\n" + tabulate(lines, heads, disable_numparse=True)


def _lines(other: Other, cells: list[list[str]]) -> list[list[str]]:
    """A line per cell; what is said of the network stands in the first."""
    clean = "" if other.clean is None else f"{other.clean:.2f}"
    named = [other.what, clean, f"{other.robust:.2f}", other.comparable]
    return [
        [*(named if number == 0 else [""] * 4), *cell, other.how * (number == 0)] for number, cell in enumerate(cells or [["", "", ""]])
    ]
