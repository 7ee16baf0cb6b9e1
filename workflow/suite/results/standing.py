"""Where each Run stands at this moment, by its files and logs: finished, stale, at work and for how long, stopped, failed and why."""

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from methods.core import paths
from methods.core.durations import span
from methods.core.errors import UserError
from workflow.suite.planning.plan import Plan
from workflow.suite.results import measure, signs_of_life, stale
from workflow.suite.results.signs_of_life import SILENT

STAGES = ("evaluated", "stale", "evaluating", "trained", "training", "stopped", "failed", "waiting")
CELLS = ("done", "stale", "running", "stopped", "failed", "missing", "not available", "not applicable")


@dataclass(frozen=True, kw_only=True)
class Standing:
    """A stage (one of STAGES), and what there is to say: time left, the last line of a log, why a number is stale."""

    stage: str
    note: str = ""


def of_runs(plan: Plan, folder: Path) -> dict[str, Standing]:
    """Every Run of the plan."""
    return {run: of_run(plan, run, folder) for run in plan.runs}


def of_run(plan: Plan, run: str, folder: Path, *, now: float | None = None) -> Standing:
    """One Run. A phase that only serves as a parent is finished when it is trained."""
    now = time.time() if now is None else now
    chosen = plan.evaluations.get(run)
    if chosen and (folder / paths.evaluation(run, chosen.id)).is_file():
        return _evaluated(plan, run, folder)
    if (folder / paths.train_manifest(run)).is_file():
        return (chosen and _evaluating(run, chosen.id, chosen.shards, folder, now)) or Standing(stage="trained")
    return _training(run, folder, now)


def of_cells(plan: Plan, table: str, standings: Mapping[str, Standing]) -> Counter:
    """How many cells of a table are in each state of CELLS."""
    counts = Counter(dict.fromkeys(CELLS, 0))
    for cell in plan.cells_of(table):
        if cell.unavailable or cell.not_applicable:
            counts["not available" if cell.unavailable else "not applicable"] += 1
            continue
        own = {standings[run].stage for run in cell.runs}
        needed = {standings[item.name].stage for run in cell.runs for item in plan.lineage(run)}
        if own <= {"evaluated", "stale"}:
            counts["stale" if "stale" in own else "done"] += 1
        elif needed & {"training", "evaluating"}:
            counts["running"] += 1
        else:
            counts[next((state for state in ("failed", "stopped") if state in needed), "missing")] += 1
    return counts


def _evaluated(plan: Plan, run: str, folder: Path) -> Standing:
    try:
        measure.read(run, plan.evaluations[run].id, folder)
        why = stale.reasons(plan, run, folder)
    except UserError as error:
        return Standing(stage="failed", note=str(error))
    return Standing(stage="stale", note="; ".join(why)) if why else Standing(stage="evaluated")


def _evaluating(run: str, evaluation: str, shards: int, folder: Path, now: float) -> Standing | None:
    logs = [folder / paths.log("merge", run, evaluation)]
    if shards == 1:
        logs.append(folder / paths.log("evaluate", run, evaluation))
    else:
        open_shards = [k for k in range(1, shards + 1) if not (folder / paths.shard(run, evaluation, k, shards)).is_file()]
        logs += [folder / paths.log("evaluate", run, evaluation, f"{k}-of-{shards}") for k in open_shards]
    tails = {path: signs_of_life.tail(path) for path in logs if path.is_file()}
    for path, lines in tails.items():
        if failure := signs_of_life.failure(lines):
            return Standing(stage="failed", note=f"{failure} ({path.relative_to(folder)})")
    for path, lines in tails.items():
        if now - path.stat().st_mtime < SILENT:
            return Standing(stage="evaluating", note=lines[-1].strip() if lines else "starting")
    return Standing(stage="stopped", note="evaluation; goes on when it is started again") if tails else None


def _training(run: str, folder: Path, now: float) -> Standing:
    log, told = folder / paths.log("train", run), signs_of_life.progress(folder / paths.progress(run))
    lines = signs_of_life.tail(log)
    if told and signs_of_life.alive(told, now):
        seen = span(max(0.0, now - told["updated"]))
        return Standing(stage="training", note=f"{signs_of_life.position(told)}{signs_of_life.left(told)}, seen {seen} ago")
    if failure := signs_of_life.failure(lines):
        return Standing(stage="failed", note=f"{failure} ({log.relative_to(folder)})")
    if told:
        note = f"{signs_of_life.position(told)}; goes on from its last saved state when it is started again"
        return Standing(stage="stopped", note=note)
    last = lines[-1].strip() if lines else ""
    if log.is_file() and now - log.stat().st_mtime < SILENT:
        return Standing(stage="training", note=last or "starting")
    return Standing(stage="stopped", note=last) if (folder / paths.state_folder(run)).is_dir() else Standing(stage="waiting")
