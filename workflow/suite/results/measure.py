"""What we measured for a cell, read from the evaluations that are finished."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from methods.core import paths, sealed
from methods.core.errors import UserError
from workflow.suite.planning.plan import Cell, Plan
from workflow.suite.results import stats

if TYPE_CHECKING:
    from workflow.suite.results.outcomes import Outcomes

STATUSES = ("done", "partial", "not run", "not available", "not applicable")
COUNTS = {"robust_acc": "n_robust", "clean_acc": "n_clean"}


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A cell and its finished numbers, as fractions; one value per finished Run (seed)."""

    cell: Cell
    status: str
    values: tuple[float, ...] = ()
    counts: tuple[tuple[int, int], ...] = ()
    labels: tuple[str, ...] = ()
    warnings: int = 0
    finished: tuple[str, ...] = ()
    results: tuple[Mapping[str, Any], ...] = field(default=(), repr=False, compare=False)

    @cached_property
    def outcomes(self) -> "Outcomes | None":
        """Which images each finished seed was right on, where the evaluations store that and are of the same images."""
        from workflow.suite.results import outcomes  # numpy: slow to import, and not needed to read a number

        return outcomes.of_results(self.results, self.cell.metric, self.labels[0]) if len(self.labels) == 1 else None

    @property
    def value(self) -> float | None:
        return stats.mean(self.values) if self.values else None

    @property
    def sd(self) -> float | None:
        return stats.sd(self.values)

    @property
    def interval(self) -> tuple[float, float] | None:
        """95 % interval over the test images (Wilson's); it says nothing of the spread between trainings.

        Several seeds are as many images as their answers are worth together; as one where it is not known which images each was right on.
        """
        if not self.counts or self.value is None:
            return None
        if len(self.counts) == 1:
            return stats.wilson(*self.counts[0])
        images = self.outcomes.effective if self.outcomes else min(n for _, n in self.counts)
        return stats.wilson(self.value * images, images)

    @property
    def n(self) -> int | None:
        return self.counts[0][1] if self.counts else None


def read(run: str, evaluation: str, folder: Path) -> dict[str, Any] | None:
    """A merged evaluation, `None` where it is not finished."""
    path = folder / paths.evaluation(run, evaluation)
    try:
        result = sealed.read(path)
    except FileNotFoundError:
        return None
    if missing := [key for key in ("clean_acc", "n", "n_clean") if key not in result]:
        raise UserError(f"{path}: misses {', '.join(missing)}; delete it and evaluate again")
    return result


def measure(plan: Plan, cell: Cell, folder: Path) -> Measured:
    """The finished numbers of a cell."""
    if cell.not_applicable:
        return Measured(cell=cell, status="not applicable")
    if cell.unavailable:
        return Measured(cell=cell, status="not available")
    merged = {run: read(run, plan.evaluations[run].id, folder) for run in cell.runs}
    finished = tuple(result for result in merged.values() if result is not None)
    return Measured(
        cell=cell,
        status="not run" if not finished else "done" if len(finished) == len(merged) else "partial",
        values=tuple(result[cell.metric] for result in finished),
        counts=tuple((result[COUNTS[cell.metric]], result["n"]) for result in finished),
        labels=tuple(dict.fromkeys(label(result) for result in finished)),
        warnings=sum(len(result.get("warnings", ())) for result in finished),
        finished=tuple(run for run, result in merged.items() if result is not None),
        results=finished,
    )


def measure_table(plan: Plan, table: str, folder: Path) -> dict[tuple[str, str], Measured]:
    """(row id, column id) -> what we measured, for a whole table."""
    return {(cell.row, cell.column): measure(plan, cell, folder) for cell in plan.cells_of(table)}


def label(result: Mapping) -> str:
    """What a person reads about the data of an evaluation."""
    data = result.get("data", "unknown data")
    return data if isinstance(data, str) else str(data.get("label", "unknown data"))
