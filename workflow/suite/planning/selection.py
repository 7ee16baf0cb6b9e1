"""Cells chosen by patterns of their addresses: `sp_ratio.*.r99`, `main_comparison.ours*.cifar10-*`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from methods.core import paths
from methods.core.errors import UserError
from workflow.suite.planning.plan import Cell, Plan


def cells(plan: Plan, patterns: Sequence[str]) -> list[Cell]:
    """The cells that match a pattern, in the order of the patterns, each once. A pattern that matches nothing is a mistake."""
    chosen: dict[str, Cell] = {}
    for pattern in patterns:
        matching = {address: cell for address, cell in plan.cells.items() if fnmatchcase(address, pattern)}
        if not matching:
            some = ", ".join(list(plan.cells)[:3])
            raise UserError(f"'{pattern}' matches no cell of scale '{plan.scale.name}'; cells are named table.row.column, such as {some}")
        chosen = {**chosen, **{address: cell for address, cell in matching.items() if address not in chosen}}
    return list(chosen.values())


def targets(plan: Plan, patterns: Sequence[str]) -> list[str]:
    """The evaluations behind those cells: what Snakemake is asked to make. Several cells may share one."""
    runs = dict.fromkeys(run for cell in cells(plan, patterns) for run in cell.runs)
    return [paths.evaluation(run, plan.evaluations[run].id) for run in runs]


def one_row(plan: Plan, table: str, row: str) -> Plan:
    """A plan of nothing but one row of a table. It is a row of section `reference`: what it is best of, the others would have to tell."""
    chosen = replace(plan.row(table, row), section="reference")
    shape = replace(plan.tables[table], rows=(chosen,), label=f"{plan.tables[table].label}:{row}")
    return replace(plan, tables={table: shape}, cells={cell.address: cell for cell in plan.cells_of(table, row)})
