"""What made a Run: code, versions, hardware, seed, time, as its own files record it."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from methods.core import paths, sealed
from methods.core.durations import span
from workflow.suite.planning.plan import Plan


def lines(plan: Plan, run: str, folder: Path) -> Iterator[str]:
    """Of the training and of each finished shard of the evaluation; nothing where nothing is finished."""
    trained = _read(folder / paths.train_manifest(run))
    if trained.get("provenance"):
        made = trained["provenance"]
        yield f"trained: {_when(made)}seed {plan.runs[run].spec['seed']}, {_hardware(made)}"
        yield f"  code: {_code(made)}"
        wall = made.get("wall_seconds", made.get("seconds"))
        if wall is not None:
            device = made.get("device_seconds")
            yield f"  time: {span(wall)} wall{'' if device is None else f', {span(device)} of the device'}"
        if trained.get("best_epoch") is not None:  # counted from 0 in the file
            label = trained.get("data", {}).get("label", "unknown data")
            yield f"  best epoch {trained['best_epoch'] + 1} of {trained.get('epochs')}, on {label}"
    if (chosen := plan.evaluations.get(run)) is None:
        return
    for k in range(1, chosen.shards + 1):
        shard = _read(folder / paths.shard(run, chosen.id, k, chosen.shards))
        if made := shard.get("provenance"):
            seconds = sum(block.get("seconds", 0) for block in shard.get("blocks", ()))
            yield f"evaluated, shard {k} of {chosen.shards}: {_hardware(made)}, {span(seconds)}"
            yield f"  code: {_code(made)}"


def _when(made: dict[str, Any]) -> str:
    return f"{datetime.fromtimestamp(made['started']).astimezone():%Y-%m-%d %H:%M %Z}, " if "started" in made else ""


def _hardware(made: dict[str, Any]) -> str:
    device = made.get("device", "unknown device")
    if device == "cpu":
        device = f"{made.get('cpu')}, {made.get('threads')} thread(s)"
    count = made.get("processes", 1)
    text = f"on {made.get('host', 'an unknown host')}, {f'{count} x ' if count > 1 else ''}{device}"
    return text + (f", SLURM job {made['slurm_job']}" if made.get("slurm_job") else "")


def _code(made: dict[str, Any]) -> str:
    git = f"git {made['git'][:12]}{' with local changes' if made.get('dirty') else ''}" if made.get("git") else "no git"
    versions = ", ".join(f"{name} {made[name]}" for name in ("python", "torch", "numpy") if name in made)
    return f"{git}, source {made.get('source', 'unknown')}, {versions}"


def _read(path: Path) -> dict[str, Any]:
    try:
        return sealed.read(path)
    except FileNotFoundError:
        return {}
