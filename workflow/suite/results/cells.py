"""All cells of some tables as one pandas frame: what the paper prints, or what we measured, in percent, settings beside each number.

Both frames have the same columns, so one predicate serves both. `state` is "number"; "none" where there is no such number (a dash, a cell
that spans two rows, a cell that does not apply); "pending" where a number is planned and not there yet.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import pandas as pd

from methods.core.run_spec import get
from workflow.suite.planning.plan import Plan, cell_keys
from workflow.suite.planning.tables import Column, Row, Table
from workflow.suite.results import names
from workflow.suite.results.measure import measure

PENDING = ("not run", "not available")
Entry = tuple[float | None, str]  # number in percent, state
SETTINGS = {"arch": "arch", "lbn": "lbn", "sparsity": "sparsity", "p": "p", "eps": "eps", "dataset": "dataset", "precision": "precision"}
SETTINGS |= {"a": "init.a", "weights": "init.weights"}


def of_paper(tables: Mapping[str, Table]) -> pd.DataFrame:
    """The paper's own numbers."""

    def entry(table: Table, row: Row, column: Column, index: int) -> Entry:
        value = row.cells[index].value
        return value, "none" if value is None else "number"

    return _frame(tables, entry)


def of_results(plan: Plan, tables: Mapping[str, Table], folder: Path) -> pd.DataFrame:
    """What is measured under `folder` for these tables of the plan."""

    def entry(table: Table, row: Row, column: Column, index: int) -> Entry:
        item = measure(plan, plan.cells[f"{table.name}.{row.id}.{column.id}"], folder)
        if item.value is not None:
            return 100 * item.value, "number"
        return None, "pending" if item.status in PENDING else "none"

    return _frame(tables, entry)


def _frame(tables: Mapping[str, Table], entry: Callable[[Table, Row, Column, int], Entry]) -> pd.DataFrame:
    lines = []
    for table in tables.values():
        for row in table.rows:
            for index, column in enumerate(table.columns):
                value, state = entry(table, row, column, index)
                lines.append({**_place(table, row, column, index), "value": value, "state": state})
    frame = pd.DataFrame(lines)
    return frame.astype({"value": float}).set_index("address", drop=False)


def _place(table: Table, row: Row, column: Column, index: int) -> dict[str, object]:
    """Where a cell stands and what the table declares of its Run, under the paper's names. Rows and columns keep the table's order."""
    keys = cell_keys(table, row, column)
    return {
        "address": f"{table.name}.{row.id}.{column.id}",
        **{"table": table.name, "row": row.id, "column": column.id, "metric": table.metric, "section": row.section},
        **{"method": names.method(keys), "network": names.network(keys), "pruning": names.pruning(keys), "group": _group(column)},
        **{"mark": row.cells[index].mark, "spans": row.cells[index].shared},
        **{name: get(keys, key) for name, key in SETTINGS.items()},
        "attack": get(keys, "attack.name"),
        "plus": get(keys, "options.plus"),
    }


def _group(column: Column) -> str:
    """What a comparison's columns differ in besides precision: the data set, else the architecture; other columns stand for themselves."""
    if "dataset" in column.run:
        return names.DATASETS.get(column.run["dataset"], column.run["dataset"])
    return names.arch(column.run["arch"]) if "arch" in column.run else column.id
