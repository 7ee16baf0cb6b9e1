"""The plan: a pure function of tables, recipes and scale to the Runs and evaluations behind every cell.

Snakemake evaluates it whenever it parses, so it must stay cheap and must not depend on anything but its arguments (and on
which datasets lie under the data root).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from methods.core.errors import UserError
from methods.core.method_files import OWN
from methods.core.run_check import check_keys
from methods.core.run_spec import Spec, canonical, get, matches, merge, slug, text_identity
from workflow.suite.planning import config, evaluate, recipes, resolve
from workflow.suite.planning.config import Scale
from workflow.suite.planning.evaluate import Evaluation
from workflow.suite.planning.others import Other, load_others
from workflow.suite.planning.recipes import Recipe
from workflow.suite.planning.spelling import hint
from workflow.suite.planning.tables import Column, Reported, Row, Table, load_tables


class Unavailable(Exception):
    """A Run that cannot be made yet; the message is the reason shown in the table."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """One training phase; `name` is its folder."""

    name: str
    id: str
    spec: Spec
    text: str
    parent: str | None = None


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One entry of a table: its Runs (one per seed), or why it has none."""

    table: str
    row: str
    column: str
    metric: str
    reported: Reported
    runs: tuple[str, ...] = ()
    not_applicable: str | None = None
    unavailable: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def address(self) -> str:
        return f"{self.table}.{self.row}.{self.column}"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """All cells of all tables at one scale, the Runs they need (parents included) and the evaluation of each; and what others measured."""

    scale: Scale
    tables: Mapping[str, Table]
    cells: Mapping[str, Cell]
    runs: Mapping[str, Run]
    evaluations: Mapping[str, Evaluation] = field(default_factory=dict)
    others: tuple[Other, ...] = ()

    def table(self, name: str) -> Table:
        """A table by name, or a clear error."""
        if name not in self.tables:
            raise UserError(
                f"workflow/config/tables: no table is called '{name}'; {hint(name, self.tables)}allowed: {', '.join(self.tables)}"
            )
        return self.tables[name]

    def row(self, table: str, name: str) -> Row:
        """A row by its table and id, or a clear error."""
        rows = self.table(table).by_id
        if name not in rows:
            raise UserError(f"workflow/config/tables/{table}.yaml: no row is called '{name}'; {hint(name, rows)}allowed: {', '.join(rows)}")
        return rows[name]

    def cells_of(self, table: str, row: str | None = None) -> list[Cell]:
        """The cells of a table (or of one of its rows) in print order."""
        rows = self.table(table).rows if row is None else [self.row(table, row)]
        return [self.cells[f"{table}.{r.id}.{column.id}"] for r in rows for column in self.tables[table].columns]

    def final_runs(self, table: str | None = None, row: str | None = None) -> list[str]:
        """The distinct Runs that are evaluated for a table (or row, or everything), in print order."""
        tables = [table] if table else list(self.tables)
        return list(dict.fromkeys(run for name in tables for cell in self.cells_of(name, row) for run in cell.runs))

    def seeds_of(self, cell: Cell) -> tuple[int, ...]:
        """The seeds of a cell's Runs, in their order."""
        return tuple(self.runs[run].spec["seed"] for run in cell.runs)

    def lineage(self, run: str) -> list[Run]:
        """A Run and its ancestors, the Run first."""
        chain = [self.runs[run]]
        while chain[-1].parent:
            chain.append(self.runs[chain[-1].parent])
        return chain


def load(scale: str, *, data_root: Path, root: Path = config.ROOT, seeds: tuple[int, ...] | None = None) -> Plan:
    """The plan of the repository at `root`; `seeds` take the place of the scale's."""
    folder = root / "workflow" / "config"
    chosen = config.load_scale(scale, folder)
    if seeds:
        chosen = replace(chosen, seeds=seeds, seeds_when=())
    tables = {name: table for name, table in load_tables(folder).items() if table.scales is None or scale in table.scales}
    return replace(build(tables, recipes.load_all(root), chosen, data_root=data_root), others=load_others(folder))


def build(tables: Mapping[str, Table], methods: Mapping[str, Recipe], scale: Scale, *, data_root: Path) -> Plan:
    """The plan of these tables, recipes (by method) and scale."""
    _check_options(tables, methods, scale)
    planner = _Planner(methods, scale, data_root)
    cells = [
        planner.cell(table, row, column, reported)
        for table in tables.values()
        for row in table.rows
        for column, reported in zip(table.columns, row.cells, strict=True)
    ]
    metrics: dict[str, set[str]] = {}
    for cell in cells:
        for run in cell.runs:
            metrics.setdefault(run, set()).add(cell.metric)
    evaluations = {run: evaluate.planned(planner.runs[run].spec, scale, needed) for run, needed in metrics.items()}
    return Plan(
        scale=scale,
        tables=dict(tables),
        cells={cell.address: cell for cell in cells},
        runs=planner.runs,
        evaluations=evaluations,
    )


def cell_keys(table: Table, row: Row, column: Column) -> Spec:
    """What a table itself says of a cell's Run, before any recipe."""
    keys = merge(table.run, column.run, row.run)
    for condition, override in row.when:
        if matches(condition, keys):
            keys = merge(keys, override)
    return keys


def _check_options(tables: Mapping[str, Table], methods: Mapping[str, Recipe], scale: Scale) -> None:
    """Refuse options in conditions of tables and in rewrites of a scale that no method has: they would never have an effect."""
    models = [recipe.options for recipe in methods.values()]
    for table in tables.values():
        for row in table.rows:
            for condition, _ in (*row.when, *row.skip, *row.notes):
                check_keys(condition, source=config.shown(table.path), at=f"row '{row.id}'", options=models)
    for keys in (scale.rewrite, *(part for pair in scale.when for part in pair)):
        check_keys(keys, source=config.shown(scale.path), at="rewrite", options=models)


class _Planner:
    """Collects Runs while cells are resolved; equal specs become one Run."""

    def __init__(self, methods: Mapping[str, Recipe], scale: Scale, data_root: Path):
        self.methods, self.scale, self.data_root = methods, scale, data_root
        self.runs: dict[str, Run] = {}

    def cell(self, table: Table, row: Row, column: Column, reported: Reported) -> Cell:
        keys = cell_keys(table, row, column)
        cell = Cell(
            table=table.name,
            row=row.id,
            column=column.id,
            metric=table.metric,
            reported=reported,
            notes=tuple(text for condition, text in row.notes if matches(condition, keys)),
        )
        for condition, why in row.skip:
            if matches(condition, keys):
                return replace(cell, not_applicable=why)
        where = f"workflow/config/tables/{table.path.name}: row '{row.id}', column '{column.id}'"
        seeds = row.seeds or table.seeds or self._seeds(keys)
        try:
            recipe = self._recipe(keys, where)
            return replace(cell, runs=tuple(self._run(recipe, keys, seed, where).name for seed in seeds))
        except Unavailable as reason:
            return replace(cell, unavailable=str(reason))

    def _seeds(self, keys: Spec) -> tuple[int, ...]:
        """The scale's seeds of a cell of which the table says this."""
        chosen = self.scale.seeds
        for condition, seeds in self.scale.seeds_when:
            chosen = seeds if matches(condition, keys) else chosen
        return chosen

    def _recipe(self, keys: Spec, where: str) -> Recipe:
        for key in ("method", "dataset"):
            if key not in keys:
                raise UserError(f"{where}: the Run has no '{key}'")
        method: str = keys["method"]
        if method in self.methods:
            return self.methods[method]
        if method in recipes.EXPECTED:
            folder = "methods" if method == OWN else "baselines"
            raise Unavailable(f"method '{method}' is not implemented yet (no file {folder}/{method}.py)")
        allowed = ", ".join(sorted({*recipes.EXPECTED, *self.methods}))
        raise UserError(f"{where}: method: no method is called '{method}'; allowed: {allowed}")

    def _run(self, recipe: Recipe, keys: Spec, seed: int, where: str, phase: str | None = None) -> Run:
        phase = phase or resolve.final_phase(recipe, keys)
        spec = resolve.resolve(recipe, keys, scale=self.scale, seed=seed, root=self.data_root, phase=phase, where=where)
        parent = recipe.phases[phase].parent if phase else None
        ancestor = self._run(recipe, keys, seed, where, parent) if parent else None
        if ancestor:
            spec["parent"] = ancestor.id
        text = canonical(spec)
        identity = text_identity(text)
        name = f"{slug(spec)}.{identity}"
        if name not in self.runs:
            self.runs[name] = Run(name=name, id=identity, spec=spec, text=text, parent=ancestor.name if ancestor else None)
        return self.runs[name]


def manifest_key(run: Run) -> tuple[str, str]:
    """The dataset and the source that a Run trains on."""
    return run.spec["dataset"], get(run.spec, "data.source")
