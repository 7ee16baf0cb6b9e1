"""Whether the robust numbers of a cell are to be trusted: the panels of its evaluations (methods/core/trust.py), one per finished seed."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from methods.core import trust
from methods.core.trust import FAIL, NOT_APPLICABLE, PASS, WARN, WORST_FIRST, Panel
from workflow.suite.planning.plan import Plan
from workflow.suite.results import measure
from workflow.suite.results.measure import Measured


@dataclass(frozen=True, kw_only=True)
class Trust:
    """The panels of a cell, Run by Run; a cell is as doubtful as the worst of them."""

    panels: Mapping[str, Panel]

    @property
    def state(self) -> str:
        return next((state for state in WORST_FIRST if any(panel.state == state for panel in self.panels.values())), NOT_APPLICABLE)

    @property
    def doubtful(self) -> bool:
        """Whether anything warns or fails."""
        return self.state in (WARN, FAIL)

    def named(self, state: str) -> tuple[str, ...]:
        """The checks that are in a state for some seed."""
        return tuple(dict.fromkeys(name for panel in self.panels.values() for name in panel.named(state)))

    @property
    def reason(self) -> str:
        """What fails and what warns, in few words."""
        return "; ".join(f"{state}: {', '.join(self.named(state))}" for state in (FAIL, WARN) if self.named(state))


def of_cell(item: Measured) -> Trust:
    """The panels behind a cell; none where it shows clean accuracy, which no attack can overestimate."""
    if item.cell.metric != "robust_acc":
        return Trust(panels={})
    results = zip(item.finished, item.results, strict=True)
    return Trust(panels={run: panel for run, result in results if (panel := trust.of_evaluation(result))})


def of_plan(plan: Plan, folder: Path, table: str | None = None) -> dict[str, Trust]:
    """Address -> its panels, for every cell of robust accuracy that has a number."""
    tables = [plan.table(table).name] if table else list(plan.tables)
    items = [measure.measure(plan, cell, folder) for name in tables for cell in plan.cells_of(name) if cell.metric == "robust_acc"]
    return {item.cell.address: of_cell(item) for item in items if item.value is not None}


def of_run(plan: Plan, run: str, folder: Path) -> Panel | None:
    """The panel of a Run's evaluation, `None` where it is not finished or attacked nothing."""
    result = measure.read(run, plan.evaluations[run].id, folder) if run in plan.evaluations else None
    return trust.of_evaluation(result) if result else None


def columns(result: Mapping[str, Any]) -> dict[str, str | None]:
    """What the frame says of an evaluation: its state, and the checks that fail and warn; all `None` where nothing was attacked."""
    panel = trust.of_evaluation(result)
    if panel is None:
        return {"trust": None, "trust_fail": None, "trust_warn": None}
    return {"trust": panel.state, "trust_fail": " ".join(panel.named(FAIL)) or None, "trust_warn": " ".join(panel.named(WARN)) or None}


def summary(panel: Panel) -> str:
    """The state, and what it is for; all checks that fail or warn by name."""
    reason = Trust(panels={"": panel}).reason
    return f"{panel.state}, {len(panel.named(PASS))} of {len(panel.checks)} checks pass" + (f"; {reason}" if reason else "")


def lines(panel: Panel) -> list[str]:
    """A panel as text: its state, and a line per check."""
    checks = [
        f"  {check.state:15s}{check.name:14s}{check.definition.shown(check.number):>9s}  {check.text} [{check.definition.citation}]"
        for check in panel.checks
    ]
    return [f"trust: {summary(panel)}", *checks]
