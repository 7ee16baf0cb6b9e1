"""Tables as the page shows them: heads in groups, rows in the paper's order, a sortable value behind each cell."""

from collections.abc import Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from methods.core import paths
from workflow.suite.page import details, filters
from workflow.suite.page.details import Shelf, Verdict
from workflow.suite.planning.plan import Plan
from workflow.suite.planning.tables import Table
from workflow.suite.results import others, trust, versus
from workflow.suite.results.measure import Measured, measure_table
from workflow.suite.tables import caption, doubts, marks, versus_text


def results(plan: Plan, name: str, folder: Path, verdicts: Mapping[str, Verdict]) -> dict[str, Any]:
    """A results table: everything the template needs, as plain values."""
    shape, measured = plan.table(name), measure_table(plan, name, folder)
    shelf, names = Shelf(plan=plan, folder=folder), filters.cells(shape)
    best = marks.best(shape, {key: item.value for key, item in measured.items() if item.value is not None})
    tied, compared = versus.ties(shape, measured), versus_text.notes(shape, measured)
    items, rows, section = list(measured.values()), [], shape.rows[0].section
    for row in shape.rows:
        cells = []
        for column in shape.columns:
            item, mark = measured[row.id, column.id], best.get((row.id, column.id))
            tie, notes = (row.id, column.id) in tied, [*item.cell.notes, *filter(None, [compared.get((row.id, column.id))])]
            cells.append(_cell(item, mark, tie, notes, shelf, verdicts.get(item.cell.address), [*row.labels, *column.head]))
        methods = dict.fromkeys(method for cell in cells if (method := names[cell["address"]].method))
        said = dict.fromkeys(filters.verdict("cells", cell["verdict"]) for cell in cells if cell["verdict"])
        chosen_by = {"words": row.id, "methods": list(methods), "verdicts": list(said)}
        rows.append({"labels": row.labels, "cells": cells, "divided": row.section != section} | chosen_by)
        section = row.section
    return {
        "name": name,
        "title": shape.title,
        "number": shape.number,
        "caption": shape.caption,
        "files": shelf.links({kind: paths.table(plan.scale.name, name, kind) for kind in paths.FORMATS}),
        "about": [caption.evaluation_line(plan, name, items), f"Data: {'; '.join(caption.data_lines(plan, name, items))}."],
        "stub": shape.stub,
        "groups": _groups(shape),
        "heads": [column.head[-1] for column in shape.columns],
        "names": [" ".join(column.head) for column in shape.columns],
        "rows": rows,
        "doubts": doubts.legend(items),
    }


def _groups(shape: Table) -> list[tuple[str, int]]:
    """Head and width of each group of columns; none where columns stand alone."""
    if all(len(column.head) == 1 for column in shape.columns):
        return []
    return [(head, len(list(columns))) for head, columns in groupby(shape.columns, key=lambda column: column.head[0])]


def _cell(
    item: Measured, mark: str | None, tied: bool, notes: list[str], shelf: Shelf, verdict: Verdict | None, names: list[str]
) -> dict[str, Any]:
    ours, paper = caption.shown(item, exact=False), caption.reported(item.cell.reported)
    apart = details.difference(item)
    return {
        "address": item.cell.address,
        "ours": ours,
        "mark": mark,
        "tied": tied,
        "doubt": doubts.sign(item),
        "paper": paper,
        "paper_mark": item.cell.reported.mark,
        "noted": bool(notes or others.departing(shelf.plan, item.cell)),
        "verdict": verdict.word if verdict else None,
        "sort": {
            "ours": caption.percent(item.value),
            "paper": "" if item.cell.reported.value is None else paper,
            "difference": "" if apart is None else f"{apart:.2f}",
        },
        "name": ", ".join(names),
        "spoken": f"{', '.join(names)}: ours {_spoken(ours)}{' (not significantly below the best)' * tied}{_doubtful(item)}"
        + (f", paper {_spoken(paper)}" if paper else ""),
        "lines": details.lines(item, shelf, verdict, notes),
    }


def _doubtful(item: Measured) -> str:
    panels = trust.of_cell(item)
    return f" (trust panel: {panels.reason})" if panels.doubtful else ""


def _spoken(text: str) -> str:
    """Signs in words, for those who hear the page."""
    return {"·": "not run yet", "-": "none", "n.a.": "not available", "below": "printed in the row below"}.get(text, text)
