"""Time stamps of results that came by another way than a job: a clone, a copy, an archive.

Snakemake makes again what is older than its input, and a clone gives files the time of the checkout, in any order. Where contents prove
which file was made from which, stamps that say the opposite are put right; where nothing is proven they are left, and Snakemake decides.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from methods.core import paths, sealed
from methods.core.errors import UserError
from workflow.suite.planning.plan import Plan

STEP_NS = 1_000_000  # later by this much: more than the finest clock of a file system


def repair(plan: Plan, folder: Path) -> list[str]:
    """Put stamps in the order in which results were made; the files whose stamps were moved."""
    return [name for run in plan.runs for name in _moved(plan, run, folder)]


def _moved(plan: Plan, run: str, folder: Path) -> Iterator[str]:
    manifest = folder / paths.train_manifest(run)
    trained = _read(manifest)
    if trained is None:
        return
    parent = plan.runs[run].parent
    if parent:
        before = folder / paths.train_manifest(parent)
        if _came_first(_read(before), trained) and _later(manifest, before):
            yield paths.train_manifest(run)
    repeated = _read(folder / paths.first_epoch(run))
    if repeated is not None and repeated.get("model") == trained.get("model_sha256") and _later(folder / paths.first_epoch(run), manifest):
        yield paths.first_epoch(run)
    if (chosen := plan.evaluations.get(run)) is None:
        return
    shards = [folder / paths.shard(run, chosen.id, k, chosen.shards) for k in range(1, chosen.shards + 1)]
    for path in (*shards, folder / paths.evaluation(run, chosen.id)):
        result = _read(path)
        if result is None or result.get("model") != trained.get("model_sha256"):
            continue
        inputs = [manifest] if path in shards else [manifest, *(shard for shard in shards if shard.is_file())]
        if _later(path, *inputs):
            yield path.relative_to(folder).as_posix()


def _came_first(parent: dict[str, Any] | None, child: dict[str, Any]) -> bool:
    """Whether a parent was finished when its child's training was begun, by their own records."""
    made, used = (parent or {}).get("provenance", {}), child.get("provenance", {})
    known = "started" in made and "wall_seconds" in made and "started" in used
    return known and made["started"] + made["wall_seconds"] <= used["started"]


def _later(path: Path, *before: Path) -> bool:
    """Make a file later than others, unless it is; whether its stamp was moved."""
    stamp, least = path.stat(), max(other.stat().st_mtime_ns for other in before) + STEP_NS
    if stamp.st_mtime_ns >= least:
        return False
    os.utime(path, ns=(stamp.st_atime_ns, least))
    return True


def _read(path: Path) -> dict[str, Any] | None:
    """A result, or None where it is not there or damaged: then it proves nothing."""
    try:
        return sealed.read(path)
    except UserError:
        return None
