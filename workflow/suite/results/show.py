"""One cell, row or Run in full, as text: its results first."""

import json
import re
from pathlib import Path

from methods.core import paths
from methods.core.errors import UserError
from workflow.suite.planning.plan import Cell, Plan, Run
from workflow.suite.results import made, others, scorecard, standing, trust
from workflow.suite.results.measure import measure
from workflow.suite.tables import caption


def show(plan: Plan, what: str, folder: Path) -> str:
    """The description of table.row.column, table.row, or a Run given by its id, the start of it, or its folder name."""
    if re.fullmatch(r"[0-9a-f]{4,12}", what) or what in plan.runs:
        return _run(plan, find(plan, what), folder)
    table, _, rest = what.partition(".")
    row, _, column = rest.partition(".")
    cells = plan.cells_of(table, row or None)
    if column:
        cells = [cell for cell in cells if cell.column == column]
        if not cells:
            allowed = ", ".join(c.id for c in plan.table(table).columns)
            raise UserError(f"workflow/config/tables/{table}.yaml: no column is called '{column}'; allowed: {allowed}")
        runs = [_run(plan, plan.runs[run], folder) for run in cells[0].runs]
        return "\n\n".join([*_results(plan, cells, folder), _cell(plan, cells[0], folder), *runs])
    return "\n\n".join([*_results(plan, cells, folder), "\n".join(_cell(plan, cell, folder) for cell in cells)])


def find(plan: Plan, what: str) -> Run:
    """A Run by its id, the start of it, or its folder name."""
    runs = [run for run in plan.runs.values() if run.name == what or run.id.startswith(what)]
    if len(runs) != 1:
        count = "no Run" if not runs else f"{len(runs)} Runs"
        raise UserError(f"{count} of scale '{plan.scale.name}' match '{what}'; `python -m workflow.suite plan` lists all ids")
    return runs[0]


def runs_of(plan: Plan, what: str) -> list[Run]:
    """The Runs of a cell, one per seed, or a Run by its name."""
    if what not in plan.cells:
        return [find(plan, what)]
    cell = plan.cells[what]
    if not cell.runs:
        raise UserError(f"{what}: has no Run: {cell.unavailable or cell.not_applicable}")
    return [plan.runs[run] for run in cell.runs]


def _results(plan: Plan, cells: list[Cell], folder: Path) -> list[str]:
    """A block with the numbers of these cells, where there are any."""
    text = scorecard.of_cells(plan, cells, folder)
    return [text] if text else []


def _cell(plan: Plan, cell: Cell, folder: Path) -> str:
    item = measure(plan, cell, folder)
    paper = "" if cell.reported.absent else f", paper {caption.reported(cell.reported)}"
    lines = [f"{cell.address}: {item.status}; ours {caption.shown(item)}{paper}"]
    if item.sd is not None:
        lines.append(f"  seeds: {len(item.values)}, mean {caption.percent(item.value)}, sd {caption.percent(item.sd)}")
    lines += [f"  spread: {text}" for text in caption.spread_lines(item)]
    lines += [f"  run {run}" for run in cell.runs]
    lines += [f"  why: {why}" for why in (cell.unavailable, cell.not_applicable) if why]
    lines += [f"  trust: {trust.summary(panel)} (run {run})" for run, panel in trust.of_cell(item).panels.items()]
    lines += [f"  others: {text}" for text in others.lines(plan, cell)]
    return "\n".join([*lines, *(f"  note: {note}" for note in cell.notes)])


def _run(plan: Plan, run: Run, folder: Path) -> str:
    used = [cell.address for cell in plan.cells.values() if run.name in cell.runs]
    used += [f"{child.name} (starts from it)" for child in plan.runs.values() if child.parent == run.name]
    now = standing.of_run(plan, run.name, folder)
    lines = [f"run {run.id}: {now.stage}{f' ({now.note})' if now.note else ''}"]
    lines += [f"  {line}" for line in scorecard.of_run(plan, run, folder)]
    lines.append(f"  folder: {paths.run_folder(run.name)}")
    lines += [f"  parent: {parent.name}" for parent in plan.lineage(run.name)[1:2]]
    if run.name in plan.evaluations:
        chosen = plan.evaluations[run.name]
        lines.append(f"  evaluation: {paths.evaluation(run.name, chosen.id)} {chosen.text}")
    lines += [f"  {line}" for line in made.lines(plan, run.name, folder)]
    lines += [f"  {line}" for panel in [trust.of_run(plan, run.name, folder)] if panel for line in trust.lines(panel)]
    lines += [f"  used by: {', '.join(used)}", "  spec:"]
    return "\n".join(lines) + "\n" + json.dumps(run.spec, indent=2, sort_keys=True)
