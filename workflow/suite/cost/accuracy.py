"""How well the cost model predicts what is finished."""

import statistics
from pathlib import Path

from methods.core import paths, sealed
from methods.core.errors import UserError
from workflow.suite.cost import work
from workflow.suite.cost.devices import Device
from workflow.suite.cost.runs import of_run
from workflow.suite.planning.plan import Plan
from workflow.suite.results import measure


def check(plan: Plan, device: Device, folder: Path) -> list[str]:
    """Predicted against recorded times of finished trainings and evaluations; other hardware than the probe's does not count."""
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
                device.seconds(work.evaluation(plan.runs[run].spec, plan.evaluations[run].spec, **shares)) / result["seconds"]
            )
    lines = [f"{kind} of scale {plan.scale.name}: {spread(ratios)}" for kind, ratios in pairs.items() if ratios]
    lines = [f"Predicted over recorded time, finished {line}" for line in lines] or [
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
