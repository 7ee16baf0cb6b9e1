"""Our numbers against the paper's, cell by cell, with a verdict from a closed set."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from methods.core import paths
from workflow.suite.planning.plan import Cell, Plan
from workflow.suite.results import stale, stats
from workflow.suite.results.measure import Measured, measure

VERDICTS = ("reproduced", "lower", "higher", "missing", "not comparable", "stale")
ROUNDING = 0.005  # the paper prints two decimals
RULE = (
    "The verdict of a cell is the first of these that applies. **not comparable**: the paper prints no number."
    " **missing**: the paper has a number and we have none yet. **stale**: the code that trained or evaluated it has changed since,"
    " or is not recorded. **not comparable**: the scale is a reduced one. **reproduced**: the paper's number, as printed to two"
    " decimals, lies in our 95 % interval. **lower** or **higher**: our number is below or above the paper's, which lies outside."
    " The interval is Wilson's over the test images (answers of several seeds to one image count as what they are worth together); with"
    " several seeds it is the wider of that and the prediction interval of one more training (Student's t). With one seed the spread"
    " between trainings is not known and not in the interval."
)


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A cell: ours, the paper's, and what we say about them. Percent throughout."""

    address: str
    verdict: str
    ours: float | None
    interval: tuple[float, float] | None
    reference: float | None
    seeds: int
    n: int | None
    why: str = ""

    @property
    def difference(self) -> float | None:
        return None if self.ours is None or self.reference is None else self.ours - self.reference


def interval(item: Measured) -> tuple[float, float] | None:
    """95 % interval in percent, in which one more training of the same kind is expected."""
    if item.interval is None:
        return None
    low, high = item.interval
    around = stats.prediction(item.values)
    if around:
        low, high = min(low, around[0]), max(high, around[1])
    return 100 * max(low, 0.0), 100 * min(high, 1.0)


def compare(plan: Plan, folder: Path, table: str | None = None) -> list[Difference]:
    """Every cell of a table, or of all, that the paper or we have a number for, in print order."""
    wanted = [plan.table(table).name] if table else list(plan.tables)
    measured = [measure(plan, cell, folder) for name in wanted for cell in plan.cells_of(name)]
    return [of_cell(plan, item, folder) for item in measured if item.cell.reported.value is not None or item.value is not None]


def of_cell(plan: Plan, item: Measured, folder: Path) -> Difference:
    """The verdict of one cell, by RULE."""
    cell, bounds, paper = item.cell, interval(item), item.cell.reported.value
    verdict, why = "", ""
    if paper is None:
        verdict, why = "not comparable", "the paper prints no number"
    elif item.value is None:
        verdict, why = "missing", cell.unavailable or cell.not_applicable or "not run yet"
    else:
        old = [reason for run in finished(plan, cell, folder) for reason in stale.reasons(plan, run, folder)]
        if old:
            verdict, why = "stale", "; ".join(dict.fromkeys(old))
        elif not plan.scale.comparable:
            verdict, why = "not comparable", f"scale {plan.scale.name} is a reduced one"
        else:
            verdict = against(100 * item.value, bounds, paper)
    return Difference(
        address=cell.address,
        verdict=verdict,
        ours=None if item.value is None else 100 * item.value,
        interval=bounds,
        reference=paper,
        seeds=len(item.values),
        n=item.n,
        why=why,
    )


def finished(plan: Plan, cell: Cell, folder: Path) -> list[str]:
    """The Runs whose numbers a cell shows."""
    return [run for run in cell.runs if (folder / paths.evaluation(run, plan.evaluations[run].id)).is_file()]


def against(ours: float, bounds: Sequence[float], reference: float) -> str:
    """reproduced, lower or higher."""
    if bounds[0] - ROUNDING <= reference <= bounds[1] + ROUNDING:
        return "reproduced"
    return "lower" if ours < reference else "higher"


def between(first: Measured, second: Measured, *, alike: bool, names: tuple[str, str], why: str = "") -> Difference:
    """The second set's number against the first's: reproduced where the difference is not significant, image by image where both are of
    the same images (McNemar, or Student's t with several seeds), else by Newcombe's interval."""
    from workflow.suite.results import versus  # numpy and scipy: slow to import, and only needed here

    one, two = first.value, second.value
    verdict = "missing" if one is None or two is None else "" if alike else "not comparable"
    if not verdict:
        pair = versus.between(second, first)
        low, high = pair.interval
        same = pair.p >= 0.05 if pair.paired else low <= 0 <= high
        verdict = "reproduced" if same else "lower" if two < one else "higher"
    reason = {"missing": f"no number in {names[0] if one is None else names[1]}", "not comparable": why}.get(verdict, "")
    return Difference(
        address=first.cell.address,
        verdict=verdict,
        ours=None if two is None else 100 * two,
        interval=interval(second),
        reference=None if one is None else 100 * one,
        seeds=len(second.values),
        n=second.n,
        why=reason,
    )


def counts(differences: Iterable[Difference]) -> dict[str, int]:
    """How many cells have each of VERDICTS."""
    seen = Counter(item.verdict for item in differences)
    return {verdict: seen[verdict] for verdict in VERDICTS}


def reproduced(differences: Iterable[Difference]) -> bool:
    """Whether every cell that has a number to be held against is reproduced: what --strict asks."""
    return all(item.verdict == "reproduced" for item in differences if item.reference is not None)
