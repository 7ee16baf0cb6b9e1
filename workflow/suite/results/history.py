"""How a training went, epoch by epoch, from the history that it writes."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from methods.core import paths, sealed
from methods.core.errors import UserError
from workflow.suite.jobs import damage
from workflow.suite.planning.plan import Plan, Run

NEEDED = ("val_clean", "val_robust", "train_acc")


@dataclass(frozen=True, kw_only=True)
class Course:
    """One training of a Run: a record per epoch, and the epoch that was kept, from 1."""

    run: Run
    records: list[dict[str, float]]
    best: int | None

    @property
    def title(self) -> str:
        """Its phase, where it has one."""
        return str(self.run.spec.get("phase", self.run.spec["method"]))


def read(run: str, folder: Path) -> list[dict[str, float]]:
    """One record per epoch."""
    path = folder / paths.history(run)
    damage.check_history(run, folder)
    try:
        records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        missing = [key for key in NEEDED if any(key not in record for record in records)]
    except (OSError, ValueError, TypeError) as error:
        raise UserError(f"{path}: is not the history of a training ({error}); train this Run again") from None
    if missing or not records:
        raise UserError(f"{path}: misses {', '.join(missing) or 'every epoch'}; train this Run again")
    return records


def of_runs(plan: Plan, runs: Iterable[str], folder: Path) -> tuple[list[list[Course]], list[str]]:
    """The trainings of each of some Runs, and the Runs that have none yet; one at least has to have some."""
    trained, waiting = [], []
    for run in runs:
        if courses := of_run(plan, run, folder):
            trained.append(courses)
        else:
            waiting.append(run)
    if not trained:
        raise UserError(
            f"{folder / paths.run_folder(waiting[0])}: is not trained yet, and a history is written at the end; `status` says how far it is"
        )
    return trained, waiting


def of_run(plan: Plan, run: str, folder: Path) -> list[Course]:
    """The trainings that led to a Run, the first phase first. Phases that are not trained yet are left out."""
    courses = []
    for item in reversed(plan.lineage(run)):
        manifest = folder / paths.train_manifest(item.name)
        if manifest.is_file():
            best = sealed.read(manifest).get("best_epoch")
            courses.append(Course(run=item, records=read(item.name, folder), best=None if best is None else best + 1))
    return courses
