"""The trust panels of a plan as text."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from tabulate import tabulate

from methods.core.trust import STATES, Panel
from methods.core.trust_checks import CHECKS
from workflow.suite.planning.plan import Plan
from workflow.suite.results import trust
from workflow.suite.results.measure import measure
from workflow.suite.results.trust import Trust
from workflow.suite.tables import caption

RULE = (
    "A robust accuracy is an upper bound: no attack did better. Each check asks whether one could have, on a few images of the evaluation"
    " or on all of its answers; points are of robust accuracy. A cell has the worst state of its checks and seeds."
)


def of_plan(plan: Plan, cells: Mapping[str, Trust], folder: Path) -> str:
    """The counts first, then every check of every Run behind evaluated cells; cells that show one Run stand together."""
    states = Counter(item.state for item in cells.values())
    counted = ", ".join(f"{states[state]} {state}" for state in STATES)
    panels: dict[str, Panel] = {run: panel for item in cells.values() for run, panel in item.panels.items()}
    parts = [f"Trust in the robust numbers of scale {plan.scale.name}: {len(cells)} evaluated cells: {counted}.", RULE]
    parts.append(tabulate(_checks(panels), ["check", *STATES, "question", "margin", "from"], tablefmt="simple", disable_numparse=True))
    for run, panel in panels.items():
        shown = [address for address, item in cells.items() if run in item.panels]
        number = caption.shown(measure(plan, plan.cells[shown[0]], folder))
        parts.append("\n".join([f"{', '.join(shown)}: {number}", f"  run {run}", *(f"  {line}" for line in trust.lines(panel))]))
    return "\n\n".join(parts)


def _checks(panels: Mapping[str, Panel]) -> list[list[str]]:
    lines = []
    for name, about in CHECKS.items():
        states = Counter(check.state for panel in panels.values() for check in panel.checks if check.name == name)
        lines.append([name, *(str(states[state]) for state in STATES), about.question, about.margin, about.citation])
    return lines
