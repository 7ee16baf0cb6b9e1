"""How far each table is, read from the results alone; workflow/suite/results/standing.py also looks at what is under way."""

from collections import Counter
from pathlib import Path

from workflow.suite.planning.plan import Plan
from workflow.suite.results.measure import STATUSES, measure


def of_tables(plan: Plan, folder: Path) -> dict[str, Counter]:
    """Table -> how many of its cells are in each of STATUSES."""
    return {
        name: Counter(dict.fromkeys(STATUSES, 0)) + Counter(measure(plan, cell, folder).status for cell in plan.cells_of(name))
        for name in plan.tables
    }


def reasons(plan: Plan) -> Counter:
    """Why cells are not available, and how many are meant by each reason."""
    return Counter(cell.unavailable for cell in plan.cells.values() if cell.unavailable)
