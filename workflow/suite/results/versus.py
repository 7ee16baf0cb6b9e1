"""One row against another, column by column; and the rows of a table that cannot be told from the best of a column."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from methods.core.errors import UserError
from workflow.suite.planning.plan import Plan
from workflow.suite.planning.tables import Table
from workflow.suite.results import contrast, paired, stats
from workflow.suite.results.contrast import same_images
from workflow.suite.results.measure import Measured, measure
from workflow.suite.tables import marks

RULE = (
    "The difference is the second minus the first. Where both have one training over the same images, p is that of McNemar's exact test and"
    " the interval that of 10 000 paired bootstrap draws; with several seeds both come from Student's t over images and seeds; without"
    " per-image outcomes the interval is Newcombe's. p is adjusted over the lines below (Holm). `could show` is the smallest difference"
    " that McNemar's test finds in four of five such experiments."
)


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two measured cells. Fractions; `kinds` counts the images that both, only the first, only the second and neither are right on."""

    first: Measured
    second: Measured
    difference: float
    interval: tuple[float, float]
    p: float
    adjusted: float
    kinds: tuple[int, int, int, int] | None = None
    could_show: float | None = None

    @property
    def verdict(self) -> str:
        """What the adjusted p-value says of the second."""
        if self.adjusted >= paired.LEVEL:
            return "undecided"
        return "higher" if self.difference > 0 else "lower"


def between(first: Measured, second: Measured) -> Comparison:
    """Two cells that have numbers; the adjusted p-value is that of a family of one."""
    test = contrast.test([(-1.0, first), (1.0, second)])
    facts = {"first": first, "second": second, "difference": test.value, "p": test.p, "adjusted": test.p}
    if not same_images(first, second):
        several = len(first.values) > 1 or len(second.values) > 1
        return Comparison(**facts, interval=test.interval() if several else stats.newcombe(first.counts[0], second.counts[0]))
    n = first.outcomes.n
    if test.error is not None:
        return Comparison(**facts, interval=test.interval())
    one, two = contrast.discordant(first, second)
    both = int((first.outcomes.right[0] & second.outcomes.right[0]).sum())
    could = paired.smallest_difference((one + two) / n, n)
    return Comparison(**facts, interval=paired.bootstrap(one, two, n), kinds=(both, one, two, n - both - one - two), could_show=could)


def family(pairs: list[tuple[Measured, Measured]]) -> list[Comparison]:
    """Comparisons that are looked at together: their p-values are adjusted."""
    alone = [between(*pair) for pair in pairs]
    return [replace(item, adjusted=p) for item, p in zip(alone, paired.holm([item.p for item in alone]), strict=True)]


def rows(plan: Plan, first: str, second: str, folder: Path, column: str | None = None) -> list[Comparison]:
    """Two rows, each table.row, in every column that both have a number in (or in one)."""
    tables = [_split(name) for name in (first, second)]
    cells = [{cell.column: cell for cell in plan.cells_of(*place)} for place in tables]
    shared = [name for name in cells[0] if name in cells[1]]
    if column is not None and column not in shared:
        raise UserError(f"'{column}' is no column of both {first} and {second}; allowed: {', '.join(shared) or 'none'}")
    wanted = [column] if column else shared
    pairs = [tuple(measure(plan, side[name], folder) for side in cells) for name in wanted]
    finished = [pair for pair in pairs if all(item.value is not None for item in pair)]
    if not finished:
        raise UserError(f"{first} and {second} have no column in which both are measured at scale '{plan.scale.name}'")
    return family(finished)


def best_of_columns(table: Table, measured: Mapping[tuple[str, str], Measured]) -> dict[str, list[Comparison]]:
    """Column -> every other ranked row (second) against the best (first); p-values are adjusted within a column."""
    columns = {}
    for column in table.columns:
        items = [measured[row.id, column.id] for row in table.rows if marks.ranked(table, row)]
        items = [item for item in items if item.value is not None]
        if len(items) > 1:
            best = max(items, key=lambda item: item.value)
            columns[column.id] = family([(best, item) for item in items if item is not best])
    return columns


def ties(table: Table, measured: Mapping[tuple[str, str], Measured]) -> set[tuple[str, str]]:
    """(row id, column id) of numbers that are below the best of their column and, image by image, not significantly so."""
    return {
        (item.second.cell.row, column)
        for column, others in best_of_columns(table, measured).items()
        for item in others
        if item.verdict == "undecided" and item.difference < 0 and same_images(item.first, item.second)
    }


def _split(name: str) -> tuple[str, str]:
    table, _, row = name.partition(".")
    if not row or "." in row:
        raise UserError(f"'{name}' is no row; a row is given as TABLE.ROW (`python -m workflow.suite rows` lists all)")
    return table, row
