"""Methods over several settings, for ranks: robust accuracy in the columns of the comparisons that differ in data set or architecture."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from workflow.suite.planning.plan import Cell, Plan, cell_keys
from workflow.suite.results import names
from workflow.suite.results.measure import measure

TABLES = ("main_comparison", "comparison_rn18_rn50")  # complete_comparison repeats columns of the first
FEWEST = 3  # methods with a number, for a column to count as a setting


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Method -> its numbers, one per setting; only methods that have all of them."""

    names: tuple[str, ...]
    values: dict[str, list[float]]


def of_paper(plan: Plan, precision: str) -> Settings:
    """The paper's numbers for one kind of weights."""
    return _settings(plan, precision, lambda cell: cell.reported.value)


def of_results(plan: Plan, precision: str, folder: Path) -> Settings:
    """Ours."""
    return _settings(plan, precision, lambda cell: measure(plan, cell, folder).value)


def _settings(plan: Plan, precision: str, number: Callable[[Cell], float | None]) -> Settings:
    columns: dict[str, dict[str, float]] = {}
    for table in (plan.tables[name] for name in TABLES if name in plan.tables):
        for column in (column for column in table.columns if column.run.get("precision") == precision):
            numbers = {}
            for place, row in enumerate(table.rows):
                cell = plan.cells[f"{table.name}.{row.id}.{column.id}"]
                if cell.reported.shared:  # one cell of the paper spans this row and the next: its number is that of both
                    cell = plan.cells[f"{table.name}.{table.rows[place + 1].id}.{column.id}"]
                value = number(cell)
                if value is not None:
                    numbers[method(cell_keys(table, row, column))] = value
            if len(numbers) >= FEWEST:
                columns[f"{table.name}.{column.id}"] = numbers
    complete = [name for name in next(iter(columns.values()), {}) if all(name in numbers for numbers in columns.values())]
    return Settings(names=tuple(columns), values={name: [numbers[name] for numbers in columns.values()] for name in complete})


def method(keys: dict) -> str:
    """A method and its pruning without the architecture, which a setting may change."""
    small = ", small" if str(keys.get("arch", "")).startswith("small_") else ""
    pruning = names.pruning(keys)
    kind = "" if pruning in ("Not Pruned", "Dynamic") else f", {pruning}"
    return f"{names.method(keys)}{'-LBN' if keys.get('lbn') else ''}{small}{kind}"
