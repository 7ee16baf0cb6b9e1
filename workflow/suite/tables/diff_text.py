"""Differences as Markdown and CSV."""

import csv
import io
from collections.abc import Sequence
from itertools import groupby

from tabulate import tabulate

from workflow.suite.planning.plan import Plan
from workflow.suite.results import compare
from workflow.suite.results.compare import RULE, Difference
from workflow.suite.results.result_sets import ResultSet
from workflow.suite.tables import caption, inert

FIELDS = ("table", "row", "column", "ours", "low", "high", "reference", "difference", "verdict", "seeds", "n", "why")
HEADS = ("row", "column", "ours", "95 % interval", "{}", "difference", "verdict")
BETWEEN_RULE = (
    "The verdict is the second set's, held against the first: **missing** where one has no number; **not comparable** where the scales"
    " differ; **reproduced** where the difference is not significant at the 5 % level; else **lower** or **higher**. Over the same images"
    " the two are compared image by image (McNemar's exact test, or Student's t over images and seeds); without per-image outcomes"
    " Newcombe's 95 % interval has to hold zero."
)


def of_plan(plan: Plan, differences: Sequence[Difference], *, made_by: str) -> str:
    """reports/<scale>/diff.md."""
    parts = [f"# Ours against the paper, scale {plan.scale.name}", f"**{caption.comparability(plan)}**", RULE, summary(differences)]
    return (
        "\n\n".join([*parts, *_tables(differences, "paper", {name: table.title for name, table in plan.tables.items()}), f"*{made_by}*"])
        + "\n"
    )


def of_sets(first: ResultSet, second: ResultSet, differences: Sequence[Difference]) -> str:
    """Two sets of results."""
    notes = [f"{item.name}: {item.unknown} lines belong to no planned Run" for item in (first, second) if item.unknown]
    title = inert.markdown(f"{second.name} ({second.scale}) against {first.name} ({first.scale})")
    return "\n\n".join([f"# {title}", *notes, BETWEEN_RULE, summary(differences), *_tables(differences, first.name, {})])


def summary(differences: Sequence[Difference]) -> str:
    """How many cells have each verdict."""
    counts = compare.counts(differences)
    return f"{len(differences)} cells: " + ", ".join(f"{number} {verdict}" for verdict, number in counts.items()) + "."


def sheet(differences: Sequence[Difference]) -> str:
    """One line per cell, for programs; percent."""
    text = io.StringIO()
    writer = csv.DictWriter(text, FIELDS, lineterminator="\n")
    writer.writeheader()
    for item in differences:
        table, row, column = item.address.split(".")
        low, high = item.interval or (None, None)
        numbers = {"ours": item.ours, "low": low, "high": high, "reference": item.reference, "difference": item.difference}
        entry = {"table": table, "row": row, "column": column, "verdict": item.verdict, "seeds": item.seeds, "n": item.n, "why": item.why}
        writer.writerow(inert.csv_entries(entry | {key: _number(value) for key, value in numbers.items()}))
    return text.getvalue()


def _tables(differences: Sequence[Difference], reference: str, titles: dict[str, str]) -> list[str]:
    parts = []
    for table, group in groupby(differences, key=lambda item: item.address.split(".")[0]):
        items, notes, lines = list(group), [], []
        for item in items:
            _, row, column = item.address.split(".")
            interval = f"[{item.interval[0]:.2f}, {item.interval[1]:.2f}]" if item.interval else ""
            number = _note(notes, item.why)
            verdict = item.verdict + (f"<sup>{number}</sup>" if number else "")
            lines.append([row, column, _number(item.ours), interval, _number(item.reference), _number(item.difference, "+.2f"), verdict])
        heads = [head.format(reference) for head in HEADS]
        grid = tabulate(lines, heads, tablefmt="pipe", disable_numparse=True)
        title = f"## {inert.markdown(titles[table])} (`{table}`)" if table in titles else f"## {table}"
        parts += [title, summary(items), grid]
        parts += ["\n".join(f"{number}. {inert.markdown(text)}" for number, text in enumerate(notes, 1))] if notes else []
    return parts


def _note(notes: list[str], text: str) -> int | None:
    if not text:
        return None
    if text not in notes:
        notes.append(text)
    return notes.index(text) + 1


def _number(value: float | None, form: str = ".2f") -> str:
    return "" if value is None else f"{value:{form}}"
