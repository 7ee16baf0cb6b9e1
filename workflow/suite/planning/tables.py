"""Tables as values: rows, columns and the paper's numbers, read from YAML and checked against the schema and the model of a Run."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from methods.core import paths
from methods.core.errors import UserError
from methods.core.run_check import check_condition, check_part
from methods.core.run_spec import Spec
from workflow.suite.planning import config, schema
from workflow.suite.planning.config import CONFIG, Condition, shown


@dataclass(frozen=True, kw_only=True)
class Reported:
    """What the paper prints in a cell: a number and its mark, a dash, or a share of the cell below; `absent` where it has no such cell."""

    value: float | None = None
    mark: str | None = None
    shared: bool = False
    absent: bool = False


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column: its heading (group and name), its part of the Run, how the paper marks its best value, what column it is held against."""

    id: str
    head: tuple[str, ...]
    best: str
    run: Spec
    against: str | None = None


@dataclass(frozen=True, kw_only=True)
class Row:
    """A row: its labels, its part of the Run, where it has no Run and why, the paper's numbers; seeds of its own, if any."""

    id: str
    labels: tuple[str, ...]
    section: str | None
    run: Spec
    when: tuple[tuple[Condition, Spec], ...]
    skip: tuple[tuple[Condition, str], ...]
    notes: tuple[tuple[Condition, str], ...]
    cells: tuple[Reported, ...]
    seeds: tuple[int, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class Table:
    """A results table, in its order of rows and columns; the paper's have a number; seeds of its own, if any, come before the scale's.
    It exists at these `scales`, or at all."""

    name: str
    path: Path
    title: str
    label: str
    caption: str
    metric: str
    stub: tuple[str, ...]
    run: Spec
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    number: int | None = None
    seeds: tuple[int, ...] | None = None
    scales: tuple[str, ...] | None = None

    @cached_property
    def by_id(self) -> dict[str, Row]:
        return {row.id: row for row in self.rows}

    @property
    def printed(self) -> bool:
        """Whether there are numbers of the paper to show beside ours."""
        return any(not cell.absent for row in self.rows for cell in row.cells)


def load_table(name: str, folder: Path = CONFIG) -> Table:
    """A table by name. Its file's name becomes names of files, links and LaTeX labels, so few signs are allowed in it."""
    path = config.find("tables", name, folder)
    source = shown(path)
    if not re.fullmatch(r"[a-z0-9][a-z0-9_]*", name) or name in (*paths.CLOSED, *paths.CHECKS):
        taken = f", and none of {', '.join((*paths.CLOSED, *paths.CHECKS))}, which the suite writes itself"
        raise UserError(f"{source}: '{name}' cannot be a table's name; allowed: small letters, digits and _{taken}")
    values = schema.read_yaml(path)
    schema.check(values, "table", source=source)
    table = Table(
        name=name,
        path=path,
        title=values["title"],
        label=values.get("label") or f"tbl:{name}",
        caption=values.get("caption") or values["title"],
        metric=values["metric"],
        stub=tuple(values["stub"]),
        run=schema.expanded(values.get("run"), source=source, at="run"),
        columns=tuple(_column(column, source) for column in values["columns"]),
        rows=tuple(_row(row, len(values["columns"]), source) for row in values["rows"]),
        number=values.get("number"),
        seeds=_seeds(values),
        scales=tuple(values["scales"]) if "scales" in values else None,
    )
    _check_scales(table, folder)
    _check_shape(table)
    _check_parts(table)
    return table


def load_tables(folder: Path = CONFIG) -> dict[str, Table]:
    """Every table, by name, in the paper's order; its own tables come before others."""
    tables = (load_table(name, folder) for name in config.names("tables", folder))
    return {table.name: table for table in sorted(tables, key=lambda table: (table.number is None, table.number, table.name))}


def _column(values: Mapping[str, Any], source: Path) -> Column:
    run = schema.expanded(values.get("run"), source=source, at=f"column '{values['id']}', run")
    best, against = values.get("best", "bold"), values.get("against")
    return Column(id=values["id"], head=tuple(values["head"]), best=best, run=run, against=against)


def _row(values: Mapping[str, Any], columns: int, source: Path) -> Row:
    cells, at = values.get("cells"), f"row '{values['id']}'"
    return Row(
        id=values["id"],
        labels=tuple(values["labels"]),
        section=values.get("section"),
        run=schema.expanded(values.get("run"), source=source, at=f"{at}, run"),
        when=tuple((condition, schema.expanded(part, source=source, at=f"{at}, when")) for condition, part in values.get("when") or ()),
        skip=tuple((condition, text) for condition, text in values.get("skip") or ()),
        notes=tuple((condition, text) for condition, text in values.get("notes") or ()),
        cells=(Reported(absent=True),) * columns if cells is None else tuple(_reported(cell) for cell in cells),
        seeds=_seeds(values),
    )


def _seeds(values: Mapping[str, Any]) -> tuple[int, ...] | None:
    return tuple(values["seeds"]) if values.get("seeds") else None


def _reported(cell: Any) -> Reported:
    if isinstance(cell, str):
        return Reported(shared=cell == "shared")
    value, mark = cell if isinstance(cell, list) else (cell, None)
    return Reported(value=float(value), mark=mark)


def _check_scales(table: Table, folder: Path) -> None:
    for scale in table.scales or ():
        if scale not in (allowed := config.names("scales", folder)):
            raise UserError(f"{shown(table.path)}: scales: no scale is called '{scale}'; allowed: {', '.join(allowed)}")


def _check_shape(table: Table) -> None:
    source = shown(table.path)
    for kind, ids in (("columns", [column.id for column in table.columns]), ("rows", [row.id for row in table.rows])):
        twice = sorted({item for item in ids if ids.count(item) > 1})
        if twice:
            raise UserError(f"{source}: {kind}: the id '{twice[0]}' stands twice; ids must differ")
    for column in table.columns:
        others = [other.id for other in table.columns if other is not column]
        if column.against not in (None, *others):
            at = f"{source}: column '{column.id}': against"
            raise UserError(f"{at}: no other column is called '{column.against}'; allowed: {', '.join(others) or 'none'}")
    for row in table.rows:
        if len(row.cells) != len(table.columns):
            raise UserError(f"{source}: row '{row.id}': cells: has {len(row.cells)} entries; allowed: one per column, {len(table.columns)}")
        if len(row.labels) != len(table.stub):
            raise UserError(
                f"{source}: row '{row.id}': labels: has {len(row.labels)} entries; allowed: one per stub column, {len(table.stub)}"
            )


def _check_parts(table: Table) -> None:
    """Refuse settings and conditions that no Run can have."""
    source = shown(table.path)
    check_part(table.run, source=source, at="run")
    for column in table.columns:
        check_part(column.run, source=source, at=f"column '{column.id}', run")
    for row in table.rows:
        check_part(row.run, source=source, at=f"row '{row.id}', run")
        for number, (_, part) in enumerate(row.when):
            check_part(part, source=source, at=f"row '{row.id}', when[{number}]")
        for name, pairs in (("when", row.when), ("skip", row.skip), ("notes", row.notes)):
            for number, (condition, _) in enumerate(pairs):
                check_condition(condition, source=source, at=f"row '{row.id}', {name}[{number}]")
