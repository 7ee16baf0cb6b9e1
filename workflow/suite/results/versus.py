"""One row against another, column by column, or one cell; and the rows of a table that cannot be told from the best of a column."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from methods.core.errors import UserError
from workflow.suite.planning.plan import Cell, Plan
from workflow.suite.planning.tables import Table
from workflow.suite.results import contrast, paired, stats
from workflow.suite.results.contrast import same_images
from workflow.suite.results.measure import Measured, measure, measure_table
from workflow.suite.tables import marks


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A measured cell against another. Fractions; `kinds` counts the images that both, only the one, only the other, and neither is
    right on; `could_show` is the smallest difference that so many images, and trainings, would show."""

    item: Measured
    other: Measured
    difference: float
    interval: tuple[float, float]
    p: float
    adjusted: float
    kinds: tuple[int, int, int, int] | None = None
    could_show: float | None = None

    @property
    def paired(self) -> bool:
        """Whether the two are of the same images."""
        return same_images(self.item, self.other)

    @property
    def verdict(self) -> str:
        """What the adjusted p-value says of the one."""
        if self.adjusted >= paired.LEVEL:
            return "undecided"
        return "higher" if self.difference > 0 else "lower"


def between(item: Measured, other: Measured) -> Comparison:
    """Two cells that have numbers; the adjusted p-value is that of a family of one."""
    test = contrast.test([(1.0, item), (-1.0, other)])
    facts = {"item": item, "other": other, "difference": test.value, "p": test.p, "adjusted": test.p}
    if test.error is None:  # one seed each, over the same images
        n, right = item.outcomes.n, item.outcomes.right[0]
        only_item, only_other = contrast.discordant(item, other)
        both = int((right & other.outcomes.right[0]).sum())
        return Comparison(
            **facts,
            interval=paired.bootstrap(only_other, only_item, n),
            kinds=(both, only_item, only_other, n - both - only_item - only_other),
            could_show=paired.smallest_difference((only_item + only_other) / n, n),
        )
    if same_images(item, other) or len(item.values) > 1 or len(other.values) > 1:
        return Comparison(**facts, interval=test.interval(), could_show=test.smallest_difference())
    return Comparison(**facts, interval=stats.newcombe(other.counts[0], item.counts[0]))


def family(pairs: Iterable[tuple[Measured, Measured]]) -> list[Comparison]:
    """Comparisons that are looked at together: their p-values are adjusted."""
    alone = [between(*pair) for pair in pairs]
    return [replace(item, adjusted=p) for item, p in zip(alone, paired.holm([item.p for item in alone]), strict=True)]


def rows(plan: Plan, one: str, other: str, folder: Path, column: str | None = None) -> list[Comparison]:
    """Two rows, each table.row, in every column that both have a number in (or in one)."""
    cells = [{cell.column: cell for cell in plan.cells_of(*_row(name))} for name in (one, other)]
    shared = [name for name in cells[0] if name in cells[1]]
    if column is not None and column not in shared:
        raise UserError(f"'{column}' is no column of both {one} and {other}; allowed: {', '.join(shared) or 'none'}")
    pairs = [tuple(measure(plan, side[name], folder) for side in cells) for name in ([column] if column else shared)]
    finished = [pair for pair in pairs if all(item.value is not None for item in pair)]
    if not finished:
        raise UserError(f"{one} and {other} have no column in which both are measured at scale '{plan.scale.name}'")
    return family(finished)


def cells(plan: Plan, one: str, other: str, folder: Path) -> list[Comparison]:
    """Two cells, each table.row.column, of whatever columns and tables."""
    pair = [measure(plan, _cell(plan, name), folder) for name in (one, other)]
    for item, name in zip(pair, (one, other), strict=True):
        if item.value is None:
            raise UserError(f"{name} is not measured at scale '{plan.scale.name}'")
    return family([(pair[0], pair[1])])


def best_of_columns(table: Table, measured: Mapping[tuple[str, str], Measured]) -> dict[str, list[Comparison]]:
    """Column -> every other ranked row against the best; p-values are adjusted within a column."""
    columns = {}
    for column in table.columns:
        items = [measured[row.id, column.id] for row in table.rows if marks.ranked(table, row)]
        items = [item for item in items if item.value is not None]
        if len(items) > 1:
            best = max(items, key=lambda item: item.value)
            columns[column.id] = family((item, best) for item in items if item is not best)
    return columns


def against_columns(table: Table, measured: Mapping[tuple[str, str], Measured]) -> dict[tuple[str, str], Comparison]:
    """(row id, column id) -> that cell against the one of its row in the column that its own names, where both are measured. Each is
    looked at by itself: an adjusted p-value would make two columns look more alike than they are."""
    pairs = {
        key: (item, measured[key[0], column.against])
        for column in table.columns
        for key, item in measured.items()
        if key[1] == column.id and column.against is not None
    }
    return {key: between(*pair) for key, pair in pairs.items() if all(item.value is not None for item in pair)}


def of_table(plan: Plan, name: str, folder: Path) -> dict[str, list[Comparison]]:
    """Column -> every other ranked row of a table against its best."""
    columns = best_of_columns(plan.table(name), measure_table(plan, name, folder))
    if not columns:
        raise UserError(f"table '{name}' has no column with two measured rows at scale '{plan.scale.name}'")
    return columns


def ties(table: Table, measured: Mapping[tuple[str, str], Measured]) -> set[tuple[str, str]]:
    """(row id, column id) of numbers that are below the best of their column and, image by image, not significantly so."""
    return {
        (item.item.cell.row, column)
        for column, others in best_of_columns(table, measured).items()
        for item in others
        if item.verdict == "undecided" and item.difference < 0 and item.paired
    }


def _cell(plan: Plan, name: str) -> Cell:
    table, row, column = name.split(".")
    cells = {cell.column: cell for cell in plan.cells_of(table, row)}
    if column not in cells:
        raise UserError(f"'{column}' is no column of {table}; allowed: {', '.join(cells)}")
    return cells[column]


def _row(name: str) -> tuple[str, str]:
    table, _, row = name.partition(".")
    if not row or "." in row:
        raise UserError(
            f"'{name}' is no row; a row is given as TABLE.ROW, a cell as TABLE.ROW.COLUMN (`python -m workflow.suite rows` lists rows)"
        )
    return table, row
