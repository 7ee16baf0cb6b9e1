"""Results that are there but are not what was written, found by their checksums before Snakemake plans its jobs.

Manifests, histories and evaluations are small and all checked; of the large files those that are about to be used. The others are
checked when they are read.
"""

import contextlib
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

from methods.core import paths, sealed
from methods.core.errors import UserError
from methods.core.revision import ROOT
from methods.core.sealed import Damaged
from workflow.suite.planning.plan import Plan


class NotCarried(Damaged):
    """A phase whose state for its children is not there: it is large, and not committed."""


def find(plan: Plan, folder: Path) -> Iterator[tuple[str, Damaged]]:
    """(file that has to be made again, what is wrong) for all damage among the results of a plan."""
    awaited = {run.parent for run in plan.runs.values() if not (folder / paths.train_manifest(run.name)).is_file()}
    for run in plan.runs:
        checks: dict[str, Callable[[], object]] = {}
        checks[paths.train_manifest(run)] = partial(_check_training, plan, run, folder, awaited=run in awaited)
        checks |= {name: partial(sealed.read, folder / name) for name in evaluations(plan, run)}
        for name, check in checks.items():
            try:
                check()
            except FileNotFoundError:  # not made yet
                continue
            except Damaged as error:
                yield name, error


def told(damage: Iterable[Damaged]) -> Iterator[str]:
    """A line for each, but one for all phases that a clone came without the state of: it has many, and nothing is wrong with it."""
    errors = list(damage)
    absent = [error for error in errors if isinstance(error, NotCarried)]
    yield from (str(error) for error in errors if error not in absent or len(absent) == 1)
    if len(absent) > 1:
        yield f"{len(absent)} phases came without what they hand over (clones do); they are trained again where a Run to be made needs them"


def checks_of(plan: Plan, folder: Path) -> dict[str, Callable[[], object]]:
    """The results of a plan that are there -> a call that raises where one is not what was written."""
    checks: dict[str, Callable[[], object]] = {}
    for run in plan.runs:
        if (folder / paths.train_manifest(run)).is_file():
            check = partial(check_model, run, folder)
            checks |= {paths.train_manifest(run): check, paths.model(run): check}
        checks |= {name: partial(sealed.read, folder / name) for name in evaluations(plan, run) if (folder / name).is_file()}
    return checks


def evaluations(plan: Plan, run: str) -> list[str]:
    """The merged evaluation of a Run, and its shards."""
    if (chosen := plan.evaluations.get(run)) is None:
        return []
    return [paths.evaluation(run, chosen.id), *(paths.shard(run, chosen.id, k, chosen.shards) for k in range(1, chosen.shards + 1))]


def check_model(run: str, folder: Path) -> Path:
    """The model file of a finished Run, if it is the one that its manifest describes."""
    path = folder / paths.model(run)
    sealed.require(path, sealed.read(folder / paths.train_manifest(run)).get("model_sha256"))
    return path


def checked_model(run: str, folder: Path) -> Path:
    """The same for readers of finished Runs, whose models no start looks at: a damaged one loses its manifest, and is so made again."""
    unpack(run, folder)
    try:
        return check_model(run, folder)
    except Damaged:
        manifest = folder / paths.train_manifest(run)
        with contextlib.suppress(FileNotFoundError):  # another reader was first
            manifest.replace(manifest.with_name(f"{manifest.name}.damaged"))
        raise


def unpack(run: str, folder: Path) -> None:
    """Make the model file of a Run that came with its compact file alone, in a process of its own: it takes torch."""
    model, packed = folder / paths.model(run), folder / paths.compact(run)
    if model.exists() or not packed.is_file():
        return
    command = [sys.executable, "-m", "methods.compact", "unpack", str(packed.resolve()), str(model.resolve())]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason was given"])[-1]
        raise UserError(f"{model}: cannot be made from {packed.name} ({reason}); get that file again")


def check_history(run: str, folder: Path) -> None:
    """Refuse a history that is not the one its manifest describes."""
    sealed.require(folder / paths.history(run), sealed.read(folder / paths.train_manifest(run)).get("history_sha256"))


def _check_training(plan: Plan, run: str, folder: Path, *, awaited: bool) -> None:
    check_history(run, folder)
    chosen = plan.evaluations.get(run)
    packed = not (folder / paths.model(run)).exists() and (folder / paths.compact(run)).is_file()  # evaluations unpack it
    if chosen and not packed and not (folder / paths.evaluation(run, chosen.id)).is_file():
        check_model(run, folder)
    if awaited:
        handover, described = folder / paths.handover(run), sealed.read(folder / paths.train_manifest(run)).get("handover_sha256")
        if described and not handover.exists():
            raise NotCarried(f"{handover}: is not there (clones lack it); this phase is trained again where a Run to be made needs it")
        sealed.require(handover, described)
