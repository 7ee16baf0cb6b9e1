"""What others measured for the network of a cell, and how far that is from the paper's number."""

from methods.core.run_spec import Spec, merge
from workflow.suite.planning.others import Other
from workflow.suite.planning.plan import Cell, Plan, cell_keys

POINTS = 2.0  # a close number that is further than this from the paper's is worth a footnote


def of_cell(plan: Plan, cell: Cell) -> list[Other]:
    """The entries that are about a cell and have a number of its kind."""
    keys = _keys(plan, cell)
    return [other for other in plan.others if keys and other.about(keys) and other.value(cell.metric) is not None]


def apart(cell: Cell, other: Other) -> float | None:
    """Theirs minus the paper's, in points; `None` where the paper has no number."""
    value = other.value(cell.metric)
    return None if value is None or cell.reported.value is None else value - cell.reported.value


def departing(plan: Plan, cell: Cell) -> list[Other]:
    """The close entries that depart from the paper's number."""
    return [other for other in of_cell(plan, cell) if other.close and abs(apart(cell, other) or 0.0) > POINTS]


def footnotes(plan: Plan, cell: Cell) -> list[str]:
    """What a table says below about numbers that depart from the paper's."""
    notes = []
    for other in departing(plan, cell):
        difference = apart(cell, other) or 0.0
        words = f"{abs(difference):.2f} points {'above' if difference > 0 else 'below'} the paper's {cell.reported.value:.2f}"
        notes.append(f"{other.who} measured {other.value(cell.metric):.2f}, {words}: {other.what}; {other.how}")
    return notes


def lines(plan: Plan, cell: Cell) -> list[str]:
    """Every entry about a cell in full, close ones first."""
    entries = sorted(of_cell(plan, cell), key=lambda other: not other.close)
    return [
        f"{other.value(cell.metric):.2f} by {other.who}: {other.what}; {other.settings}; {other.comparable}: {other.how} [{other.where}]"
        for other in entries
    ]


def _keys(plan: Plan, cell: Cell) -> Spec | None:
    """The Run of a cell as the paper has it: what the table says wins over what the scale made of it. `None` without a Run."""
    if not cell.runs:
        return None
    table = plan.table(cell.table)
    column = next(column for column in table.columns if column.id == cell.column)
    return merge(plan.runs[cell.runs[0]].spec, cell_keys(table, plan.row(cell.table, cell.row), column))
