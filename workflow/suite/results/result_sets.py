"""Two sets of results side by side: a scale of this folder, another folder with results, or the file of a frame."""

import json
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

    @property
    def empty(self) -> bool:
        return all(item.value is None for item in self.cells.values())


def load(text: str, planned: Plan, *, folder: Path, data_root: Path) -> ResultSet:
    """What a word on the command line means: a scale's name (SCALE:SEEDS for seeds of its own), a frame's file, or a folder that holds
    results/ of the planned scale. A folder or a frame is read with the seeds that it has."""

    def at(scale: str, seeds: tuple[int, ...] | None = None) -> Plan:
        alone = not planned.scale.seeds_when  # else some cells have more seeds than the scale's own
        same = scale == planned.scale.name and (seeds is None or (alone and seeds == planned.scale.seeds))
        return planned if same else plan.load(scale, data_root=data_root, seeds=seeds)

    name, colon, seeds = text.partition(":")
    if name in config.names("scales"):
        return _measured(text, at(name, config.seeds_of(seeds) if colon else None), folder)
    path = Path(text)
    if path.suffix.removeprefix(".") in paths.FRAMES:
        return _framed(text, path, at)
    path = path.parent if path.name == paths.RESULTS else path
    if not (path / paths.RESULTS).is_dir():
        scales = ", ".join(config.names("scales"))
        allowed = (
            f"a scale ({scales}; with seeds, {planned.scale.name}:1,2), a .parquet or .csv frame, or a folder that holds {paths.RESULTS}/"
        )
        raise UserError(f"'{text}' is no set of results; allowed: {allowed}")
    return _measured(text, at(planned.scale.name, _seeds_in(path)), path)


def _seeds_in(folder: Path) -> tuple[int, ...] | None:
    """The seeds of the Runs in a folder; none where there is no Run."""
    seeds = set()
    for path in folder.glob(paths.spec("*")):
        try:
            seeds.add(int(json.loads(path.read_text(encoding="utf-8"))["seed"]))
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise UserError(f"{path}: is not the spec of a Run ({error!r}); train it again, or delete its folder") from None
    return tuple(sorted(seeds)) or None


def diff(first: ResultSet, second: ResultSet, table: str | None = None) -> list[Difference]:
    """The second set against the first, for every cell that either has."""
    differences, alike = [], first.scale == second.scale
    for address, one in first.cells.items():
        two = second.cells[address]
        if (one.value is None and two.value is None) or table not in (None, one.cell.table):
            continue
        differences.append(
            compare.between(one, two, alike=alike, names=(first.name, second.name), why=f"scales {first.scale} and {second.scale}")
        )
    return differences


def _measured(name: str, planned: Plan, folder: Path) -> ResultSet:
    cells = {address: measure(planned, cell, folder) for address, cell in planned.cells.items()}
    return ResultSet(name=name, scale=planned.scale.name, cells=cells)


def _framed(name: str, path: Path, at: Callable[..., Plan]) -> ResultSet:
    """A frame says itself of which scale and seeds it is."""
    from workflow.suite.results import frame  # pandas: slow to import, and only needed here

    lines = frame.read(path)
    scales, seeds = sorted(lines["scale"].unique()), tuple(sorted(map(int, lines["seed"].unique())))
    if len(scales) != 1:
        raise UserError(f"{path}: is of {'no scale' if not scales else 'several scales: ' + ', '.join(scales)}; give the frame of one")
    planned = at(scales[0], seeds)
    by_run = {(line["run"], line["evaluation"]): line for line in lines.to_dict("records")}
    known = sum((run, chosen.id) in by_run for run, chosen in planned.evaluations.items())
    if not known:
        raise UserError(f"{path}: none of its {len(by_run)} Runs is planned at scale {scales[0]}; it was made by other tables or recipes")
    cells = {address: _from_lines(planned, cell, by_run) for address, cell in planned.cells.items()}
    return ResultSet(name=name, scale=planned.scale.name, cells=cells, unknown=len(by_run) - known)


def _from_lines(planned: Plan, cell: Cell, by_run: dict[tuple[str, str], dict]) -> Measured:
    lines = [line for run in cell.runs if (line := by_run.get((run, planned.evaluations[run].id)))]
    counts = tuple((int(line[COUNTS[cell.metric]]), int(line["n"])) for line in lines)
    return Measured(cell=cell, status="done" if lines else "not run", values=tuple(hits / n for hits, n in counts), counts=counts)
