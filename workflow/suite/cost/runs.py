"""What one Run costs on a device, and which Runs are behind a table."""

from dataclasses import dataclass

from workflow.suite.cost import work
from workflow.suite.cost.devices import Device
from workflow.suite.planning.plan import Plan

# Where the paper prints no robust accuracy for a Run: shares of images that are classified right and that withstand everything.
RIGHT, ROBUST = 0.75, 0.45


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Seconds of a Run: its training, its evaluation as it usually is, and its evaluation at the most."""

    train: float
    evaluate: float = 0.0
    most: float = 0.0

    @property
    def usual(self) -> float:
        return self.train + self.evaluate


def of_run(plan: Plan, run: str, device: Device) -> Cost:
    """The cost of one Run."""
    spec = plan.runs[run].spec
    train = device.training(spec)
    chosen = plan.evaluations.get(run)
    if chosen is None:
        return Cost(train=train)
    robust = expected_robust(plan, run)
    usual = work.evaluation(spec, chosen.spec, right=max(RIGHT, robust), robust=robust)
    starts = chosen.shards * device.startup
    return Cost(train=train, evaluate=starts + device.seconds(usual), most=starts + device.seconds(work.evaluation(spec, chosen.spec)))


def expected_robust(plan: Plan, run: str) -> float:
    """The robust accuracy that the paper prints for a Run; a usual one where it prints none."""
    cells = (cell for cell in plan.cells.values() if run in cell.runs and cell.metric == "robust_acc")
    return next((cell.reported.value / 100 for cell in cells if cell.reported.value is not None), ROBUST)


def runs_of(plan: Plan, table: str | None = None, row: str | None = None) -> list[str]:
    """Every Run behind a table, or a row of it, parents included, each once."""
    return list(dict.fromkeys(run.name for name in plan.final_runs(table, row) for run in plan.lineage(name)))
