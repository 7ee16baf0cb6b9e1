"""Where each Run stands at this moment, by its files and logs: finished, stale, at work and for how long, stopped, failed and why."""

import json
import platform
import re
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from methods.core import paths
from methods.core.durations import span
from methods.core.errors import UserError
from workflow.suite.planning.plan import Plan
from workflow.suite.results import measure, stale

STAGES = ("evaluated", "stale", "evaluating", "trained", "training", "stopped", "failed", "waiting")
CELLS = ("done", "stale", "running", "stopped", "failed", "missing", "not available", "not applicable")
SILENT = 180.0  # seconds without a sign of life after which a job on another machine counts as stopped
CLOCK = 2.0  # seconds by which the kernel's note of a start may be off
FAILURE = re.compile(r"^(error: |[\w.]*(Error|Exception)\b)")


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
    found = [(path, *_tail(path)) for path in logs if path.is_file()]
    for path, _, failure in found:
        if failure:
            return Standing(stage="failed", note=f"{failure} ({path.relative_to(folder)})")
    for path, last, _ in found:
        if now - path.stat().st_mtime < SILENT:
            return Standing(stage="evaluating", note=last or "starting")
    return Standing(stage="stopped", note="evaluation; goes on when it is started again") if found else None


def _training(run: str, folder: Path, now: float) -> Standing:
    log, progress = folder / paths.log("train", run), _progress(folder / paths.progress(run))
    last, failure = _tail(log) if log.is_file() else ("", None)
    if progress and _alive(progress, now):
        seen = span(max(0.0, now - progress["updated"]))
        return Standing(stage="training", note=f"{_position(progress)}{_left(progress)}, seen {seen} ago")
    if failure:
        return Standing(stage="failed", note=f"{failure} ({log.relative_to(folder)})")
    if progress:
        return Standing(stage="stopped", note=f"{_position(progress)}; goes on from its last saved state when it is started again")
    if log.is_file() and now - log.stat().st_mtime < SILENT:
        return Standing(stage="training", note=last or "starting")
    return Standing(stage="stopped", note=last) if (folder / paths.state_folder(run)).is_dir() else Standing(stage="waiting")


def _progress(path: Path) -> dict | None:
    """What a training tells of itself while it runs (methods/runtime/heartbeat.py)."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return found if {"epochs", "steps", "done", "begun", "started", "updated", "pid", "host"} <= found.keys() else None
    except (OSError, ValueError, AttributeError):
        return None


def _alive(progress: Mapping, now: float) -> bool:
    """On this machine: whether the process is there, and not a later one that was given its number; on another: whether it was heard
    of lately."""
    if progress["host"] != platform.node():
        return now - progress["updated"] < SILENT
    try:
        process = psutil.Process(progress["pid"])
        return process.status() != psutil.STATUS_ZOMBIE and process.create_time() <= progress["updated"] + CLOCK
    except psutil.NoSuchProcess:
        return False


def _position(progress: Mapping) -> str:
    epoch = min(progress["done"] // progress["steps"] + 1, progress["epochs"])
    return f"epoch {epoch}/{progress['epochs']}, step {progress['done'] % progress['steps']}/{progress['steps']}"


def _left(progress: Mapping) -> str:
    made = progress["done"] - progress["begun"]
    if made <= 0:
        return ""
    ahead = progress["epochs"] * progress["steps"] - progress["done"]
    return f", about {span(ahead * (progress['updated'] - progress['started']) / made)} left"


def _tail(path: Path) -> tuple[str, str | None]:
    """The last line of a log, and the last one that tells of a failure."""
    with path.open("rb") as stream:
        stream.seek(max(0, path.stat().st_size - 20000))
        lines = [line.strip() for line in stream.read().decode(errors="replace").splitlines() if line.strip()]
    failures = [line for line in lines[-40:] if FAILURE.match(line)]
    return (lines[-1] if lines else ""), (failures[-1] if failures else None)
