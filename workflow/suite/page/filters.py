"""What a reader can filter the page by: the methods behind its rows, and the verdicts on cells and claims."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from workflow.suite.paper.claims import verdicts
from workflow.suite.planning.plan import cell_keys
from workflow.suite.planning.tables import Table
from workflow.suite.results import compare, names

# Whose verdicts -> their heading, and the words in the order of their importance.
VERDICTS: Mapping[str, tuple[str, Iterable[str]]] = {
    "cells": ("Cells against the paper", compare.VERDICTS),
    "paper": ("Claims, on the paper's numbers", verdicts.PAPER),
    "ours": ("Claims, on our numbers", verdicts.OURS),
}


@dataclass(frozen=True, kw_only=True)
class Names:
    """What a cell is found by: its method, under the paper's name where it has one, and the labels and heads that it stands under."""

    method: str | None
    labels: str


def cells(*tables: Table) -> dict[str, Names]:
    """Cell -> its names; also of cells that have no Run."""
    return {
        f"{table.name}.{row.id}.{column.id}": Names(
            method=names.method(cell_keys(table, row, column)), labels=" ".join([*row.labels, *column.head])
        )
        for table in tables
        for row in table.rows
        for column in table.columns
    }


def verdict(whose: str, word: str) -> str:
    """A verdict as rows and choices name it: a word may be said of cells and of claims."""
    return f"{whose}: {word}"


def choices(present: Iterable[str]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Heading and (value, word) of the verdicts that some row has."""
    there = set(present)
    groups = [(title, [(verdict(whose, word), word) for word in words]) for whose, (title, words) in VERDICTS.items()]
    return [(title, kept) for title, words in groups if (kept := [(value, word) for value, word in words if value in there])]
