"""What a plan costs before it is run: device-hours per table and in total, and how well the same model foretells what is finished."""

import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tabulate import tabulate

from methods.core import paths, sealed
from methods.core.errors import UserError
from workflow.suite.cost import work
from workflow.suite.cost.devices import Device
from workflow.suite.planning.plan import Plan
from workflow.suite.results import measure

# Where the paper prints no robust accuracy for a Run: shares of images that are classified right and that withstand everything.
RIGHT, ROBUST = 0.75, 0.45
HOUR = 3600.0


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Seconds of a Run: its training, and its evaluation as it usually is and at worst."""

    train: float
    evaluate: float = 0.0
    worst: float = 0.0


def of_run(plan: Plan, run: str, device: Device) -> Cost:
    """The cost of one Run."""
    spec = plan.runs[run].spec
    train = device.seconds(work.training(spec))
    chosen = plan.evaluations.get(run)
    if chosen is None:
        return Cost(train=train)
    robust = expected_robust(plan, run)
    usual = work.evaluation(spec, chosen.spec, right=max(RIGHT, robust), robust=robust)
    starts = chosen.shards * device.startup
    return Cost(train=train, evaluate=starts + device.rate(usual), worst=starts + device.rate(work.evaluation(spec, chosen.spec)))


def expected_robust(plan: Plan, run: str) -> float:
    """The robust accuracy that the paper prints for a Run; a usual one where it prints none."""
    cells = (cell for cell in plan.cells.values() if run in cell.runs and cell.metric == "robust_acc")
    return next((cell.reported.value / 100 for cell in cells if cell.reported.value is not None), ROBUST)


def runs_of(plan: Plan, table: str | None = None) -> list[str]:
    """Every Run behind a table, parents included, each once."""
    return list(dict.fromkeys(run.name for name in plan.final_runs(table) for run in plan.lineage(name)))


def report(plan: Plan, device: Device, table: str | None, folder: Path, also: Plan | None = None) -> str:
    """The cost as text; finished Runs of the plan (and of `also`) say how far off the model is."""
    names = [plan.table(table).name] if table else list(plan.tables)
    costs = {run: of_run(plan, run, device) for run in runs_of(plan, table)}
    users: dict[str, int] = {}
    for name in plan.tables:
        for run in runs_of(plan, name):
            users[run] = users.get(run, 0) + 1
    lines = [_line(name, runs_of(plan, name), costs, users) for name in names]
    if table is None:
        lines.append(_line("all, each run once", list(costs), costs, None))
    heads = ["table", "runs", "training h", "evaluation h", "at worst h", "sum h", "of it shared h"]
    parts = [
        f"scale {plan.scale.name}, hours of one device: {device.title}",
        device.source,
        tabulate(lines, heads, floatfmt=",.2f"),
        "A run that several tables share counts in each of them and once in the total. Usual evaluations take the paper's robust",
        "accuracies; at worst every image withstands every attack. The sum takes the usual ones.",
    ]
    plans = [plan] + ([also] if also and also.scale.name != plan.scale.name else [])
    errors = dict.fromkeys(line for item in plans for line in check(item, device, folder))
    return "\n".join([*parts, *errors])


def _line(name: str, runs: Iterable[str], costs: dict[str, Cost], users: dict[str, int] | None) -> list:
    found = {run: costs[run] for run in runs}
    train, usual, worst = (sum(getattr(cost, part) for cost in found.values()) / HOUR for part in ("train", "evaluate", "worst"))
    shared = "" if users is None else sum(cost.train + cost.evaluate for run, cost in found.items() if users[run] > 1) / HOUR
    return [name, len(found), train, usual, worst, train + usual, shared]


def check(plan: Plan, device: Device, folder: Path) -> list[str]:
    """Foretold against recorded times of finished trainings and evaluations; other hardware than the probe's does not count."""
    if not device.measured:
        return [f"The error of an assumed figure is not known; `python -m methods.probe --out {paths.bench('probe')}` measures a device."]
    pairs: dict[str, list[float]] = {"trainings": [], "evaluations": []}
    others = 0
    for run in plan.runs:
        made = _read(folder / paths.train_manifest(run)).get("provenance", {})
        seconds = made.get("wall_seconds", made.get("seconds"))
        if not seconds:
            continue
        title = made.get("device") if made.get("device") != "cpu" else f"{made.get('cpu')}, {made.get('threads')} thread(s)"
        if title != device.title or made.get("processes", 1) > 1:
            others += 1
            continue
        cost = of_run(plan, run, device)
        pairs["trainings"].append(cost.train / seconds)
        if run in plan.evaluations and (result := _merged(plan, run, folder)) and result.get("seconds"):
            shares = {"right": result["clean_acc"], "robust": result["robust_acc"]} if result.get("robust_acc") is not None else {}
            pairs["evaluations"].append(
                device.rate(work.evaluation(plan.runs[run].spec, plan.evaluations[run].spec, **shares)) / result["seconds"]
            )
    lines = [f"{kind} of scale {plan.scale.name}: {spread(ratios)}" for kind, ratios in pairs.items() if ratios]
    lines = [f"Foretold over recorded time, finished {line}" for line in lines] or [
        f"No finished run of scale {plan.scale.name} was made on this device: how far off the figures are is not known."
    ]
    return lines + ([f"{others} finished runs of other hardware or thread counts were left out."] if others else [])


def spread(ratios: list[float]) -> str:
    """Median, the middle 80 %, and the number of ratios."""
    ordered = sorted(ratios)
    low, high = (ordered[round(share * (len(ordered) - 1))] for share in (0.1, 0.9))
    return f"median {statistics.median(ordered):.2f}, four of five between {low:.2f} and {high:.2f} ({len(ordered)} of them)"


def _read(path: Path) -> dict:
    try:
        return sealed.read(path)
    except (OSError, UserError):
        return {}


def _merged(plan: Plan, run: str, folder: Path) -> dict | None:
    try:
        return measure.read(run, plan.evaluations[run].id, folder)
    except UserError:
        return None
