"""Two sets of results side by side: a scale of this folder, another folder with results, or the file of a frame."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from methods.core import paths
from methods.core.errors import UserError
from workflow.suite.planning import config, plan
from workflow.suite.planning.plan import Cell, Plan
from workflow.suite.results import compare
from workflow.suite.results.compare import Difference
from workflow.suite.results.measure import COUNTS, Measured, measure


@dataclass(frozen=True, kw_only=True)
class ResultSet:
    """Cell address -> what was measured, and at which scale."""

    name: str
    scale: str
    cells: dict[str, Measured]
    unknown: int = 0


def load(text: str, planned: Plan, *, folder: Path, data_root: Path) -> ResultSet:
    """What a word on the command line means: a scale's name, a frame's file, or a folder that holds results/ of the planned scale."""

    def at(scale: str) -> Plan:
        return planned if scale == planned.scale.name else plan.load(scale, data_root=data_root)

    if text in config.names("scales"):
        return _measured(text, at(text), folder)
    path = Path(text)
    if path.suffix.removeprefix(".") in paths.FRAMES:
        return _framed(text, path, at)
    path = path.parent if path.name == paths.RESULTS else path
    if not (path / paths.RESULTS).is_dir():
        allowed = f"a scale ({', '.join(config.names('scales'))}), a .parquet or .csv frame, or a folder that holds {paths.RESULTS}/"
        raise UserError(f"'{text}' is no set of results; allowed: {allowed}")
    return _measured(text, planned, path)


def diff(first: ResultSet, second: ResultSet, table: str | None = None) -> list[Difference]:
    """The second set against the first, for every cell that either has."""
    differences, alike = [], first.scale == second.scale
    for address, one in first.cells.items():
        two = second.cells[address]
        if (one.value is None and two.value is None) or table not in (None, one.cell.table):
            continue
        differences.append(compare.between(one, two, alike=alike, why=f"scales {first.scale} and {second.scale}"))
    return differences


def _measured(name: str, planned: Plan, folder: Path) -> ResultSet:
    cells = {address: measure(planned, cell, folder) for address, cell in planned.cells.items()}
    return ResultSet(name=name, scale=planned.scale.name, cells=cells)


def _framed(name: str, path: Path, at: Callable[[str], Plan]) -> ResultSet:
    """A frame says by its Runs which scale it is of."""
    from workflow.suite.results import frame  # pandas: slow to import, and only needed here

    needed = ["run", "evaluation", "n", "n_clean", "n_robust"]
    by_run = {(line["run"], line["evaluation"]): line for line in frame.read(path)[needed].to_dict("records")}
    plans = [at(scale) for scale in config.names("scales")]
    known = [sum((run, chosen.id) in by_run for run, chosen in candidate.evaluations.items()) for candidate in plans]
    if not max(known):
        raise UserError(f"{path}: none of its {len(by_run)} Runs is planned at any scale; it was made by other tables or recipes")
    planned = plans[known.index(max(known))]
    cells = {address: _from_lines(planned, cell, by_run) for address, cell in planned.cells.items()}
    return ResultSet(name=name, scale=planned.scale.name, cells=cells, unknown=len(by_run) - max(known))


def _from_lines(planned: Plan, cell: Cell, by_run: dict[tuple[str, str], dict]) -> Measured:
    lines = [line for run in cell.runs if (line := by_run.get((run, planned.evaluations[run].id)))]
    counts = tuple((int(line[COUNTS[cell.metric]]), int(line["n"])) for line in lines)
    return Measured(cell=cell, status="done" if lines else "not run", values=tuple(hits / n for hits, n in counts), counts=counts)
