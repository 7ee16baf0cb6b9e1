"""What there is to know of one cell, as labelled lines for the page."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from methods.core import paths
from workflow.suite.planning.plan import Plan
from workflow.suite.results import others, trust
from workflow.suite.results.measure import Measured
from workflow.suite.tables import caption

Line = tuple[str, list[dict[str, str]]]


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What the comparison with the paper says of a cell."""

    word: str
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class Shelf:
    """Where files lie: links lead from the page to those that exist."""

    plan: Plan
    folder: Path

    def entry(self, path: str) -> dict[str, str]:
        return {"text": path} | ({"href": self._from_page(path)} if (self.folder / path).exists() else {})

    def links(self, files: Mapping[str, str]) -> list[tuple[str, str]]:
        """(name, link) of those files that exist."""
        return [(name, self._from_page(path)) for name, path in files.items() if (self.folder / path).is_file()]

    def _from_page(self, path: str) -> str:
        return Path(os.path.relpath(path, Path(paths.page(self.plan.scale.name)).parent)).as_posix()


def difference(item: Measured) -> float | None:
    """Ours minus the paper's, in percentage points."""
    paper = item.cell.reported.value
    return None if item.value is None or paper is None else 100 * item.value - paper


def lines(item: Measured, shelf: Shelf, verdict: Verdict | None, notes: Sequence[str]) -> list[Line]:
    """Label and entries of each thing to say, in reading order."""
    cell, plan = item.cell, shelf.plan
    entries: list[tuple[str, list[str | dict[str, str]]]] = [("Status", [item.status])]
    if item.value is not None:
        entries.append(("Ours", [f"{caption.percent(item.value)} %"]))
        entries += _spread(item)
        entries.append(("Data", list(item.labels)))
    if not cell.reported.absent:
        entries.append(("Paper", [_paper(item)]))
    measured_elsewhere = others.lines(plan, cell)
    entries += [("Others", list(measured_elsewhere))] if measured_elsewhere else []
    apart = difference(item)
    if apart is not None:
        entries.append(("Difference", [f"{apart:+.2f} points"]))
    if verdict:
        entries.append(("Verdict", [verdict.word + (f": {verdict.why}" if verdict.why else "")]))
    entries += [("Why", [why]) for why in (cell.unavailable, cell.not_applicable) if why]
    entries += [("Note", list(notes))] if notes else []
    panels = trust.of_cell(item).panels
    for run, panel in panels.items():
        seed = f", seed {plan.runs[run].spec['seed']}" if len(panels) > 1 else ""
        entries.append((f"Trust{seed}", [trust.summary(panel)]))
        entries.append(("Checks", [f"{check.name}, {check.state}: {check.text} [{check.definition.citation}]" for check in panel.checks]))
    if item.warnings:
        entries.append(("Warnings", [f"{item.warnings} from the attack; the evaluation file has them"]))
    for seed, run in zip(plan.seeds_of(cell), cell.runs, strict=True):
        chosen = plan.evaluations[run]
        entries.append((f"Run, seed {seed}", [plan.runs[run].id]))
        if (network := shelf.folder / paths.compact(run)).is_file():
            entries.append(("Network", [f"{network.stat().st_size:,} bytes", shelf.entry(paths.compact(run))]))
        entries.append(("Files", [shelf.entry(path) for path in (paths.run_folder(run), paths.evaluation(run, chosen.id))]))
        entries.append(("Logs", [shelf.entry(path) for path in (paths.log("train", run), *evaluation_logs(plan, run))]))
    return [(label, [entry if isinstance(entry, dict) else {"text": entry} for entry in parts]) for label, parts in entries]


def evaluation_logs(plan: Plan, run: str) -> list[str]:
    """The logs of an evaluation: one per shard, or a single one in a plan that cuts nothing."""
    chosen = plan.evaluations[run]
    if all(item.shards == 1 for item in plan.evaluations.values()):
        return [paths.log("evaluate", run, chosen.id)]
    return [paths.log("evaluate", run, chosen.id, f"{k}-of-{chosen.shards}") for k in range(1, chosen.shards + 1)]


def _spread(item: Measured) -> list[tuple[str, list[str]]]:
    low, high = item.interval
    entries = [("95 % interval", [f"{caption.percent(low)} to {caption.percent(high)} %, over {item.n} test images"])]
    if item.sd is not None:
        values = ", ".join(caption.percent(value) for value in item.values)
        entries.append(("Seeds", [f"{len(item.values)}, standard deviation {caption.percent(item.sd)}: {values}"]))
        entries += [("Spread", [text]) for text in caption.spread_lines(item)]
    return entries


def _paper(item: Measured) -> str:
    reported = item.cell.reported
    if reported.value is None:
        return "printed in the row below, for both" if reported.shared else "a dash"
    return f"{caption.reported(reported)} %" + (f", {reported.mark}" if reported.mark else "")
