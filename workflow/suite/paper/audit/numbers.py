"""Contradictions between cells: one setting with two numbers, dashes for numbers, settings mixed within a table, suspicious equalities."""

from collections import defaultdict
from itertools import combinations

import pandas as pd

from workflow.suite.paper.claims.evidence import Paper
from workflow.suite.results.names import OURS

SETTING = ["method", "arch", "lbn", "sparsity", "p", "a", "weights", "eps", "dataset", "precision", "attack", "metric"]
TRIVIAL = 10.0  # percent; a tenth is what guessing gives on CIFAR10


def settings(paper: Paper) -> pd.DataFrame:
    """All cells, with absent settings as a dash so that they compare equal."""
    cells = paper.cells[~paper.cells["spans"]]
    return cells.assign(**{key: cells[key].astype(object).where(cells[key].notna(), "-") for key in SETTING})


def name(cell) -> str:
    return f"{cell.method} {cell.network} {cell.pruning or ''}".strip().replace("  ", " ") + f", {cell.group}, {cell.precision}"


def repeated(paper: Paper) -> list[list]:
    """The groups of cells, in two tables or more, that have the same setting."""
    groups = defaultdict(list)
    for cell in settings(paper).itertuples():
        groups[tuple(getattr(cell, key) for key in SETTING)].append(cell)
    return [group for group in groups.values() if len({cell.table for cell in group}) > 1]


def two_numbers(paper: Paper) -> list[str]:
    """Cells of the same setting with different numbers."""
    contradictions = []
    for group in repeated(paper):
        for one, two in combinations(group, 2):
            if one.state == two.state == "number" and one.value != two.value:
                values = f"{one.value:.2f} in `{one.table}`, {two.value:.2f} in `{two.table}` ({two.value - one.value:+.2f})"
                contradictions.append(f"{name(one)}: {values}")
    return contradictions


def equal_numbers(paper: Paper) -> tuple[int, int]:
    """How many pairs of printed numbers have the same setting, and how many of these are equal."""
    pairs = [(a, b) for group in repeated(paper) for a, b in combinations([c for c in group if c.state == "number"], 2)]
    return len(pairs), sum(a.value == b.value for a, b in pairs)


def dash_and_number(paper: Paper) -> list[str]:
    """Cells printed as a dash that another table has a number for, where dashes are said to be trivial or not applicable."""
    meant = {item["table"]: item["dash"] for item in paper.printed["captions"] if "dash" in item}
    contradictions = []
    for group in repeated(paper):
        for dash in (cell for cell in group if cell.state == "none" and cell.table in meant):
            for other in (cell for cell in group if cell.state == "number" and cell.value > TRIVIAL):
                contradictions.append(f"{name(dash)}: a dash ({meant[dash.table]}) in `{dash.table}`, {other.value:.2f} in `{other.table}`")
    return contradictions


def mixed_scales(paper: Paper) -> list[str]:
    """Two rows of ours that seem to differ in p alone and differ in the score scale a as well, with the number at equal a elsewhere."""
    cells, contradictions = settings(paper), []
    mine = cells[cells["method"].isin(OURS) & (cells["state"] == "number")]
    for _, rows in mine[mine["section"].notna()].groupby(["table", "method", "column"], sort=False):
        for one, two in combinations(rows.itertuples(), 2):
            if one.p == two.p or one.a == two.a:
                continue
            keys = {key: getattr(two, key) for key in SETTING} | {"a": one.a}
            same = mine[(mine[list(keys)] == pd.Series(keys)).all(axis=1)]
            for twin in same.itertuples():
                gaps = f"the gap is {one.value - two.value:.2f} as printed and {one.value - twin.value:.2f} at equal a"
                contradictions.append(
                    f"`{one.table}`, {name(one)} (a = {one.a}, {one.value:.2f}) and p = {two.p} (a = {two.a}, {two.value:.2f}) differ in a"
                    f" too; `{twin.table}` has {twin.value:.2f} for the latter at a = {twin.a}: {gaps}"
                )
    return contradictions


def twins(paper: Paper) -> list[str]:
    """Two rows of one table with the same number in the same column."""
    contradictions = []
    cells = paper.cells[paper.cells["state"] == "number"]
    cells = cells[cells.duplicated(["table", "column", "value"], keep=False)]
    for (table, column, value), group in cells.groupby(["table", "column", "value"], sort=False):
        contradictions += [
            f"`{table}`, {column}: {a.method} {a.network} and {b.method} {b.network} both {value:.2f}"
            for a, b in combinations(group.itertuples(), 2)
        ]
    return contradictions


def binary_above_full(paper: Paper) -> list[str]:
    """Rows whose binary network beats its full-precision counterpart."""
    cells = paper.cells[(paper.cells["state"] == "number") & ~paper.cells["method"].isin(OURS)]
    both = cells.pivot_table(index=["table", "method", "network", "pruning", "group"], columns="precision", values="value", sort=False)
    higher = both[both["binary"] > both["fp"]]
    return [f"`{t}`, {m} {n}, {p}, {g}: binary {row.binary:.2f}, FP {row.fp:.2f}" for (t, m, n, p, g), row in higher.iterrows()]


def small_above_full(paper: Paper) -> list[str]:
    """Small networks that beat the full-size one they imitate, with the same training and without LBN."""
    cells = paper.cells[(paper.cells["state"] == "number") & (paper.cells["method"] == "AT") & (paper.cells["lbn"] == False)]  # noqa: E712
    contradictions = []
    for (table, column), group in cells.groupby(["table", "column"], sort=False):
        is_small = group["arch"].str.startswith("small")
        for small in group[is_small].itertuples():
            beaten = group[~is_small & (group["value"] < small.value)]
            contradictions += [
                f"`{table}`, {column}: {small.network} {small.value:.2f}, {full.network} {full.value:.2f}" for full in beaten.itertuples()
            ]
    return contradictions
