"""Comparisons of rows as text."""

from collections.abc import Mapping, Sequence

from tabulate import tabulate

from workflow.suite.planning.plan import Plan
from workflow.suite.planning.tables import Table
from workflow.suite.results import paired, versus
from workflow.suite.results.measure import Measured
from workflow.suite.results.versus import Comparison
from workflow.suite.tables import caption

RULE = (
    "Where both have one training over the same images, p is that of McNemar's exact test and the interval that of"
    f" {paired.DRAWS} paired bootstrap draws; with several seeds both are Student's over images and seeds; without per-image outcomes the"
    " interval is Newcombe's. p is adjusted over the lines of a list (Holm); below 0.05 the difference counts. `could show` is the"
    " smallest difference that the test finds in four of five such experiments, with so many images on which exactly one is right, or with"
    " such a spread of images and seeds."
)
HEADS = ("", "", "", "difference", "95 % interval", "both", "only 1st", "only 2nd", "neither", "p", "adjusted", "", "could show")


def of_rows(plan: Plan, one: str, other: str, lines: Sequence[Comparison]) -> str:
    """Two rows, a line per column."""
    return _two(plan, one, other, ["column", one, other], [[item.item.cell.column, *_line(item)] for item in lines])


def of_cells(plan: Plan, one: str, other: str, lines: Sequence[Comparison]) -> str:
    """Two cells, in one line."""
    return _two(plan, one, other, ["the one", "the other"], [_line(item) for item in lines])


def _two(plan: Plan, one: str, other: str, first: list[str], entries: list[list[str]]) -> str:
    heads = [*first, *HEADS[3:]]
    grid = tabulate(entries, heads, disable_numparse=True, stralign="right")
    return "\n\n".join([f"{one} against {other}, scale {plan.scale.name}", caption.comparability(plan), grid, RULE])


def of_table(plan: Plan, name: str, columns: Mapping[str, Sequence[Comparison]]) -> str:
    """The rows of a table against the best of each column."""
    parts = [f"{name}, scale {plan.scale.name}: every row against the best of its column", caption.comparability(plan)]
    for column, lines in columns.items():
        best = lines[0].other
        entries = [[item.item.cell.row, *_line(item)] for item in sorted(lines, key=lambda item: -item.difference)]
        grid = tabulate(entries, ["row", "", "best", *HEADS[3:]], disable_numparse=True, stralign="right")
        parts.append(f"{column}: best is {best.cell.row} with {caption.percent(best.value)}\n\n{grid}")
    return "\n\n".join([*parts, RULE])


def notes(table: Table, measured: Mapping[tuple[str, str], Measured]) -> dict[tuple[str, str], str]:
    """(row id, column id) -> what a note says of a cell that is held against the one of another column."""
    heads = {column.id: " ".join(column.head) for column in table.columns}
    compared = versus.against_columns(table, measured)
    return {key: _note(item, heads[item.other.cell.column]) for key, item in compared.items()}


def _note(item: Comparison, other: str) -> str:
    low, high = item.interval
    apart = f"against {other}: {100 * item.difference:+.2f} points, 95 % interval [{100 * low:+.2f}, {100 * high:+.2f}], p = {_p(item.p)}"
    if item.could_show is None:
        return apart
    return f"{apart}; {caption.percent(item.could_show)} points would have been seen in four of five such experiments"


def _p(value: float) -> str:
    return f"{value:.3f}" if value >= 0.001 else f"{value:.0e}"


def _line(item: Comparison) -> list[str]:
    low, high = item.interval
    could = caption.percent(item.could_show) if item.could_show is not None else "" if item.kinds is None else "none"
    return [
        *(caption.percent(side.value) for side in (item.item, item.other)),
        f"{100 * item.difference:+.2f}",
        f"[{100 * low:+.2f}, {100 * high:+.2f}]",
        *map(str, item.kinds or ("",) * 4),
        *map(_p, (item.p, item.adjusted)),
        item.verdict,
        could,
    ]
