"""How far each Run and each table is, read from the files alone."""

from collections import Counter
from pathlib import Path

from workflow.suite import paths
from workflow.suite.measure import STATUSES, measure
from workflow.suite.plan import Plan

STAGES = ("evaluated", "trained", "started", "waiting")


def stage(plan: Plan, run: str, folder: Path) -> str:
    """The stage of a Run: one of STAGES. A phase that only serves as a parent is finished when it is trained."""
    if run in plan.evaluations and (folder / paths.evaluation(run, plan.evaluations[run].id)).is_file():
        return "evaluated"
    if (folder / paths.train_manifest(run)).is_file():
        return "trained"
    return "started" if (folder / paths.state_folder(run)).is_dir() else "waiting"


def of_tables(plan: Plan, folder: Path) -> dict[str, Counter]:
    """Table -> how many of its cells are in each of STATUSES."""
    return {
        name: Counter(dict.fromkeys(STATUSES, 0)) + Counter(measure(plan, cell, folder).status for cell in plan.cells_of(name))
        for name in plan.tables
    }


def of_runs(plan: Plan, folder: Path) -> Counter:
    """How many Runs are in each of STAGES."""
    return Counter(stage(plan, run, folder) for run in plan.runs)


def reasons(plan: Plan) -> Counter:
    """Why cells are not available, and how many are meant by each reason."""
    return Counter(cell.unavailable for cell in plan.cells.values() if cell.unavailable)
