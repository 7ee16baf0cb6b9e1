"""The configuration as values: suite settings, scales and tables, read from YAML and checked against the schemas."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from methods.core import paths
from methods.core.errors import UserError
from methods.core.run_check import check_condition, check_keys, check_part, check_value
from methods.core.run_spec import expand
from workflow.suite.planning import schema

ROOT = Path(__file__).resolve().parents[3]
CONFIG = ROOT / "workflow" / "config"

Pairs = tuple[tuple[Mapping, Any], ...]


@dataclass(frozen=True, kw_only=True)
class Suite:
    """Where to run, at which scale, with how many GPUs per Run; time limits are for the GPU of that name (config/devices.yaml)."""

    scale: str
    data_root: Path
    allow_cpu: bool = False
    gpu: str = "a100"
    gpus_per_run: Mapping[str, int] = field(default_factory=dict)
    longest_hours: float = 24


@dataclass(frozen=True, kw_only=True)
class Scale:
    """A rewriting of the paper's Runs to a budget; `rewrite` comes before the conditional `when`; `warm` starts jobs from
    one process that has torch loaded, which pays where a job takes seconds."""

    name: str
    path: Path
    comparable: bool
    why: str
    seeds: tuple[int, ...]
    require_gpu: bool
    warm: bool
    data: Mapping[str, Any]
    evaluate: Mapping[str, Any]
    rewrite: Mapping[str, Any] = field(default_factory=dict)
    when: Pairs = ()


@dataclass(frozen=True, kw_only=True)
class Reported:
    """What the paper prints in a cell: a number and its mark, a dash, or a share of the cell below; `absent` where it has no such cell."""

    value: float | None = None
    mark: str | None = None
    shared: bool = False
    absent: bool = False


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column: its heading (group and name), its part of the Run, how the paper marks its best value."""

    id: str
    head: tuple[str, ...]
    best: str
    run: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Row:
    """A row: its labels, its part of the Run, where it has no Run and why, and the paper's numbers."""

    id: str
    labels: tuple[str, ...]
    section: str | None
    run: Mapping[str, Any]
    when: Pairs
    skip: Pairs
    notes: Pairs
    cells: tuple[Reported, ...]


@dataclass(frozen=True, kw_only=True)
class Table:
    """A results table, in its order of rows and columns; the paper's have a number."""

    name: str
    path: Path
    title: str
    label: str
    caption: str
    metric: str
    stub: tuple[str, ...]
    run: Mapping[str, Any]
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    number: int | None = None

    @cached_property
    def by_id(self) -> dict[str, Row]:
        return {row.id: row for row in self.rows}

    @property
    def printed(self) -> bool:
        """Whether there are numbers of the paper to show beside ours."""
        return any(not cell.absent for row in self.rows for cell in row.cells)


def load_suite(values: Mapping | None = None) -> Suite:
    """The settings of suite.yaml, or those given (as Snakemake hands them over)."""
    path = CONFIG / "suite.yaml"
    values = schema.read_yaml(path) if values is None else dict(values)
    if isinstance(words := values.get("allow_cpu"), str):  # --config takes only Python's spelling for a truth value
        values["allow_cpu"] = {"true": True, "false": False}.get(words, words)
    if isinstance(counts := values.get("gpus_per_run"), Mapping):  # ... and reads numbers in braces as words
        values["gpus_per_run"] = {name: int(n) if isinstance(n, str) and n.isdecimal() else n for name, n in counts.items()}
    schema.check(values, "suite", source=shown(path))
    return Suite(**{**values, "data_root": Path(values["data_root"])})


def names(kind: str, folder: Path = CONFIG) -> list[str]:
    """The names of all `scales` or `tables`."""
    return sorted(path.stem for path in (folder / kind).glob("*.yaml"))


def load_scale(name: str, folder: Path = CONFIG) -> Scale:
    """A scale by name."""
    path = _find("scales", name, folder)
    values = _scale_values(name, path, folder)
    schema.check(values, "scale", source=shown(path))
    rewrites = [("rewrite", values.get("rewrite", {}))]
    rewrites += [(f"when[{number}]", change) for number, (_, change) in enumerate(values.get("when", []))]
    for at, change in rewrites:
        check_keys(change, source=shown(path), at=at)
        for key, value in change.items():
            if not isinstance(value, Mapping):
                check_value(key, value, source=shown(path), at=at)
    for name_, pairs in (("when", values.get("when", [])), ("evaluate.when", values["evaluate"].get("when", []))):
        for number, (condition, _) in enumerate(pairs):
            check_condition(condition, source=shown(path), at=f"{name_}[{number}]")
    return Scale(
        name=name,
        path=path,
        comparable=values["comparable"],
        why=values["why"],
        seeds=tuple(values["seeds"]),
        require_gpu=values["require_gpu"],
        warm=values["warm"],
        data=values["data"],
        evaluate=values["evaluate"],
        rewrite=values.get("rewrite", {}),
        when=tuple((condition, change) for condition, change in values.get("when", ())),
    )


def load_table(name: str, folder: Path = CONFIG) -> Table:
    """A table by name. Its file's name becomes names of files, links and LaTeX labels, so few signs are allowed in it."""
    path = _find("tables", name, folder)
    if not re.fullmatch(r"[a-z0-9][a-z0-9_]*", name) or name in (*paths.CLOSED, *paths.CHECKS):
        taken = f", and none of {', '.join((*paths.CLOSED, *paths.CHECKS))}, which the suite writes itself"
        raise UserError(f"{shown(path)}: '{name}' cannot be a table's name; allowed: small letters, digits and _{taken}")
    values = schema.read_yaml(path)
    schema.check(values, "table", source=shown(path))
    table = Table(
        name=name,
        path=path,
        run=expand(values.get("run", {})),
        stub=tuple(values["stub"]),
        columns=tuple(_column(column) for column in values["columns"]),
        rows=tuple(_row(row, len(values["columns"])) for row in values["rows"]),
        number=values.get("number"),
        label=values.get("label", f"tbl:{name}"),
        caption=values.get("caption", values["title"]),
        **{key: values[key] for key in ("title", "metric")},
    )
    _check_shape(table)
    _check_parts(table)
    return table


def load_tables(folder: Path = CONFIG) -> dict[str, Table]:
    """Every table, by name, in the paper's order; its own tables come before others."""
    tables = (load_table(name, folder) for name in names("tables", folder))
    return {table.name: table for table in sorted(tables, key=lambda table: (table.number is None, table.number, table.name))}


def _scale_values(name: str, path: Path, folder: Path) -> Any:
    """What a scale's file says, on top of what the scale that it `extends` says, key by key."""
    values = schema.read_yaml(path)
    if not isinstance(values, Mapping) or "extends" not in values:
        return values
    whole = {other: schema.read_yaml(folder / "scales" / f"{other}.yaml") for other in names("scales", folder) if other != name}
    allowed = [other for other, base in whole.items() if "extends" not in base]
    if values["extends"] not in allowed:
        raise UserError(f"{shown(path)}: extends: '{values['extends']}' is not allowed; allowed: a whole scale, {', '.join(allowed)}")
    return {**whole[values["extends"]], **{key: value for key, value in values.items() if key != "extends"}}


def _find(kind: str, name: str, folder: Path) -> Path:
    path = folder / kind / f"{name}.yaml"
    if name not in names(kind, folder):
        raise UserError(f"{shown(folder / kind)}: no {kind[:-1]} is called '{name}'; allowed: {', '.join(names(kind, folder))}")
    return path


def shown(path: Path) -> Path:
    """A path as messages name it: within the repository relative to its root."""
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path


def _pairs(pairs: Any) -> Pairs:
    return tuple((condition, expand(then) if isinstance(then, Mapping) else then) for condition, then in pairs or ())


def _column(values: Mapping) -> Column:
    return Column(id=values["id"], head=tuple(values["head"]), best=values.get("best", "bold"), run=expand(values.get("run", {})))


def _row(values: Mapping, columns: int) -> Row:
    cells = values.get("cells")
    return Row(
        id=values["id"],
        labels=tuple(values["labels"]),
        section=values.get("section"),
        run=expand(values.get("run", {})),
        when=_pairs(values.get("when")),
        skip=_pairs(values.get("skip")),
        notes=_pairs(values.get("notes")),
        cells=(Reported(absent=True),) * columns if cells is None else tuple(_reported(cell) for cell in cells),
    )


def _reported(cell: Any) -> Reported:
    if isinstance(cell, str):
        return Reported(shared=cell == "shared")
    value, mark = cell if isinstance(cell, list) else (cell, None)
    return Reported(value=float(value), mark=mark)


def _check_shape(table: Table) -> None:
    source = shown(table.path)
    for kind, items in (("columns", table.columns), ("rows", table.rows)):
        ids = [item.id for item in items]
        twice = sorted({item for item in ids if ids.count(item) > 1})
        if twice:
            raise UserError(f"{source}: {kind}: the id '{twice[0]}' stands twice; ids must differ")
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
        for name, pairs in (("when", row.when), ("skip", row.skip), ("notes", row.notes)):
            for number, (condition, consequence) in enumerate(pairs):
                at = f"row '{row.id}', {name}[{number}]"
                check_condition(condition, source=source, at=at)
                if name == "when":
                    check_part(consequence, source=source, at=at)
