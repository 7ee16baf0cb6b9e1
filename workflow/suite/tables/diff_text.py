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
BETWEEN_RULE = (
    "The verdict is the second set's, held against the first: **missing** where one has no number; **not comparable** where the scales"
    " differ; **reproduced** where the difference is not significant at the 5 % level; else **lower** or **higher**. Over the same images"
    " the two are compared image by image (McNemar's exact test, or Student's t over images and seeds); without per-image outcomes"
    " Newcombe's 95 % interval has to hold zero."
)


def of_plan(plan: Plan, differences: Sequence[Difference], *, only: Sequence[str] = (), made_by: str) -> str:
    """reports/<scale>/diff.md."""
    scale = plan.scale.name
    hints = [] if any(item.ours is not None for item in differences) else [_hint(scale, scale)]
    parts = [f"# Scale {scale} against the paper", *_summary(differences, only), f"**{caption.comparability(plan)}**", *hints]
    return "\n\n".join([*parts, *_list(_chosen(differences, only), scale, "paper"), RULE, f"*{made_by}*"]) + "\n"


def of_sets(first: ResultSet, second: ResultSet, differences: Sequence[Difference], *, only: Sequence[str] = ()) -> str:
    """Two sets of results; columns have their names."""
    names = [item.name if first.name != second.name else f"{item.name} ({place})" for item, place in ((first, "1st"), (second, "2nd"))]
    titles = [name if item.scale in name else f"{name} (scale {item.scale})" for name, item in zip(names, (first, second), strict=True)]
    notes = [f"{inert.markdown(item.name)}: {item.unknown} of its Runs are not planned here." for item in (first, second) if item.unknown]
    notes += [_hint(inert.markdown(name), item.scale) for name, item in zip(names, (first, second), strict=True) if item.empty]
    parts = [f"# {inert.markdown(f'{titles[1]} against {titles[0]}')}", *_summary(differences, only), *notes]
    return "\n\n".join([*parts, *_list(_chosen(differences, only), names[1], names[0]), BETWEEN_RULE])


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


def _summary(differences: Sequence[Difference], only: Sequence[str]) -> list[str]:
    """Verdicts over all, and per table where there are several; a verdict that nothing has is no column."""
    parts, tables = [summary(differences)], [(name, list(group)) for name, group in groupby(differences, key=_table)]
    if len(tables) > 1:
        verdicts = [verdict for verdict, number in compare.counts(differences).items() if number]
        lines = [[name, len(items), *(compare.counts(items)[verdict] for verdict in verdicts)] for name, items in tables]
        parts.append(tabulate(lines, ["table", "cells", *verdicts], tablefmt="pipe"))
    if only:
        parts.append(f"Shown: {', '.join(only)} ({len(_chosen(differences, only))} of {len(differences)} cells).")
    return parts


def _chosen(differences: Sequence[Difference], only: Sequence[str]) -> list[Difference]:
    """Those with one of these verdicts (or all), the largest difference first; without one, in print order at the end."""
    chosen = [item for item in differences if not only or item.verdict in only]
    return sorted(chosen, key=lambda item: (item.difference is None, -abs(item.difference or 0.0)))


def _list(differences: Sequence[Difference], name: str, reference: str) -> list[str]:
    if not differences:
        return []
    notes: list[str] = []
    lines = []
    for item in differences:
        interval = f"[{item.interval[0]:.2f}, {item.interval[1]:.2f}]" if item.interval else ""
        number = _note(notes, item.why)
        verdict = item.verdict + (f"<sup>{number}</sup>" if number else "")
        numbers = [_number(item.ours), interval, _number(item.reference), _number(item.difference, "+.2f")]
        lines.append([*item.address.split("."), *numbers, verdict])
    heads = ["table", "row", "column", inert.markdown(name), "95 % interval", inert.markdown(reference), "difference", "verdict"]
    grid = tabulate(lines, heads, tablefmt="pipe", disable_numparse=True)
    return [grid, *(["\n".join(f"{number}. {inert.markdown(text)}" for number, text in enumerate(notes, 1))] if notes else [])]


def _hint(name: str, scale: str) -> str:
    return (
        f"{name} has no numbers yet: `snakemake --cores 8 all_tables --config scale={scale}` makes them,"
        f" `python -m workflow.suite status --scale {scale}` says how far they are."
    )


def _table(item: Difference) -> str:
    return item.address.split(".")[0]


def _note(notes: list[str], text: str) -> int | None:
    if not text:
        return None
    if text not in notes:
        notes.append(text)
    return notes.index(text) + 1


def _number(value: float | None, form: str = ".2f") -> str:
    return "" if value is None else f"{round(value, 2) + 0.0:{form}}"  # no -0.00
