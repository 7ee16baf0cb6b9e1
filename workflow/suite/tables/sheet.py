"""Tables as CSV: one line per cell, in the paper's order, for programs; texts that look like formulas are quoted (inert.py)."""

import csv
import io
from pathlib import Path

from workflow.suite.planning.plan import Plan
from workflow.suite.results import others, trust, versus
from workflow.suite.results.measure import measure_table
from workflow.suite.tables import inert, marks, versus_text
from workflow.suite.tables.caption import percent

FIELDS = (
    *("table", "row", "column", "labels", "head", "metric", "status", "ours", "low", "high", "sd", "seeds", "n", "mark", "tie"),
    *("paper", "paper_mark", "scale", "comparable", "data", "warnings", "trust", "doubts", "runs", "why", "notes", "others"),
)


def table(plan: Plan, name: str, folder: Path) -> str:
    """A whole table; numbers are in percent, as the paper's are."""
    shape, measured = plan.table(name), measure_table(plan, name, folder)
    ours = marks.best(shape, {key: item.value for key, item in measured.items() if item.value is not None})
    tied, compared = versus.ties(shape, measured), versus_text.notes(shape, measured)
    text = io.StringIO()
    writer = csv.DictWriter(text, FIELDS, lineterminator="\n")
    writer.writeheader()
    heads = {column.id: " ".join(column.head) for column in shape.columns}
    for (row, column), item in measured.items():
        cell = item.cell
        low, high = item.interval or (None, None)
        entry = {"table": name, "row": row, "column": column, "labels": " | ".join(shape.by_id[row].labels)}
        entry |= {"head": heads[column], "metric": cell.metric, "status": item.status, "ours": percent(item.value)}
        entry |= {"low": percent(low), "high": percent(high), "sd": percent(item.sd), "seeds": len(item.values)}
        entry |= {"n": item.n, "mark": ours.get((row, column)), "tie": (row, column) in tied or None, "paper_mark": cell.reported.mark}
        entry |= {"paper": "" if cell.reported.value is None else f"{cell.reported.value:.2f}"}
        entry |= {"scale": plan.scale.name, "comparable": plan.scale.comparable, "data": "; ".join(item.labels)}
        notes = filter(None, [*cell.notes, compared.get((row, column))])
        entry |= {"warnings": item.warnings, "runs": " ".join(cell.runs), "notes": "; ".join(notes)}
        panels = trust.of_cell(item)
        entry |= {"trust": panels.state if panels.panels else None, "doubts": panels.reason}
        entry |= {"others": "; ".join(others.lines(plan, cell))}
        entry |= {"why": cell.unavailable or cell.not_applicable}
        writer.writerow(inert.csv_entries(entry))
    return text.getvalue()
