"""Tables of the page that come as sheets: closed forms, differences, claims."""

import csv
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from markupsafe import Markup, escape

from methods.core import paths
from workflow.suite.page import filters
from workflow.suite.page.details import Shelf, Verdict
from workflow.suite.page.filters import Names
from workflow.suite.paper import closed_tables
from workflow.suite.paper.claims import evidence, verdicts
from workflow.suite.planning.plan import Plan
from workflow.suite.results import compare
from workflow.suite.tables import inert


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A text of a sheet, with a smaller one under it; `kind` is text, name, number, or word (a verdict, which has a colour)."""

    text: str
    below: str = ""
    kind: str = "text"


@dataclass(frozen=True, kw_only=True)
class Line:
    """A row of a sheet, and what else a reader may find it by."""

    entries: Sequence[Entry]
    words: str = ""
    methods: Sequence[str] = ()
    verdicts: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """A titled table of texts; `files` are (name, link)."""

    name: str
    title: str
    texts: Sequence[str]
    heads: Sequence[str]
    lines: Sequence[Line]
    files: Sequence[tuple[str, str]] = field(default=())


def closed(plan: Plan, folder: Path) -> list[Sheet]:
    """The tables that need no Run."""
    shelf, paper = Shelf(plan=plan, folder=folder), evidence.of_paper(plan.tables)
    return [
        Sheet(
            name=table.name,
            title=table.title,
            texts=[table.caption],
            heads=table.heads,
            lines=[
                Line(entries=[Entry(text=formula(text) if place in table.formulas else text) for place, text in enumerate(row)])
                for row in table.rows
            ],
            files=shelf.links({kind: paths.table(plan.scale.name, table.name, kind) for kind in paths.FORMATS}),
        )
        for table in (make(paper) for make in closed_tables.TABLES.values())
    ]


def differences(plan: Plan, folder: Path) -> Sheet | None:
    """Every cell against the paper's, where the comparison has been made: first those that are measured."""
    lines, cells = read(folder / paths.diff(plan.scale.name, "csv")), filters.cells(*plan.tables.values())
    if lines is None:
        return None
    lines.sort(key=lambda line: not line["ours"])
    counts = Counter(line["verdict"] for line in lines)
    summary = f"{len(lines)} cells: " + ", ".join(f"{counts[word]} {word}" for word in compare.VERDICTS) + "."
    return Sheet(
        name="diff",
        title="Differences",
        texts=[summary, emphasis(compare.RULE)],
        heads=("table", "row", "column", "ours", "95 % interval", "paper", "difference", "seeds", "n", "verdict, and why"),
        lines=[_difference(line, cells.get(_address(line))) for line in lines],
        files=Shelf(plan=plan, folder=folder).links({kind: paths.diff(plan.scale.name, kind) for kind in ("md", "csv")}),
    )


def _difference(line: Mapping[str, str], names: Names | None) -> Line:
    interval = f"{line['low']} to {line['high']}" if line["low"] else ""
    numbers = (line["ours"], interval, line["reference"], line["difference"], line["seeds"], line["n"])
    return Line(
        entries=[
            *(Entry(text=line[key], kind="name") for key in ("table", "row", "column")),
            *(Entry(text=text, kind="number") for text in numbers),
            Entry(text=line["verdict"], below=line["why"], kind="word"),
        ],
        words=names.labels if names else "",
        methods=[names.method] if names and names.method else [],
        verdicts=[filters.verdict("cells", line["verdict"])],
    )


def cell_verdicts(plan: Plan, folder: Path) -> dict[str, Verdict]:
    """Cell -> what the comparison says of it."""
    lines = read(folder / paths.diff(plan.scale.name, "csv")) or []
    return {_address(line): Verdict(word=line["verdict"], why=line["why"]) for line in lines}


def _address(line: Mapping[str, str]) -> str:
    return f"{line['table']}.{line['row']}.{line['column']}"


def claims(plan: Plan, folder: Path) -> Sheet | None:
    """The paper's claims, where they have been tested."""
    lines = read(folder / paths.claims(plan.scale.name, "csv"))
    if lines is None:
        return None
    texts = []
    for key, whose, words in (("paper", "the paper's", verdicts.PAPER), ("ours", "our", verdicts.OURS)):
        meanings = "; ".join(f"{word}: {text}" for word, text in words.items())
        texts.append(f"On {whose} numbers: {_counted(line[key] for line in lines)}. {meanings}.")
    return Sheet(
        name="claims",
        title="Claims",
        texts=texts,
        heads=("id", "where", "reading", "claim, and the rule that tests it", "on the paper's numbers", "on ours"),
        lines=[_claim(line) for line in lines],
        files=Shelf(plan=plan, folder=folder).links({kind: paths.claims(plan.scale.name, kind) for kind in ("md", "csv")}),
    )


def _claim(line: Mapping[str, str]) -> Line:
    return Line(
        entries=[
            *(Entry(text=line[key]) for key in ("id", "where", "reading")),
            Entry(text=line["claim"], below=line["rule"]),
            Entry(text=line["paper"], below=line["paper_numbers"], kind="word"),
            Entry(text=line["ours"], below=line["our_numbers"], kind="word"),
        ],
        verdicts=[filters.verdict(whose, line[whose]) for whose in ("paper", "ours")],
    )


def read(path: Path) -> list[dict[str, str]] | None:
    """The lines of a CSV file, `None` where it is not there."""
    if not path.is_file():
        return None
    with path.open(encoding="utf-8", newline="") as stream:
        return [{key: inert.from_csv(value) for key, value in line.items()} for line in csv.DictReader(stream)]


def emphasis(text: str) -> Markup:
    """Markdown's two stars as bold."""
    return Markup(re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", str(escape(text))))


def formula(text: str) -> Markup:
    """Powers and indices of a short formula."""
    text = re.sub(r"_\{(\w+)\}", r"<sub>\1</sub>", str(escape(text)))
    return Markup(re.sub(r"\^(\d)", r"<sup>\1</sup>", text))


def _counted(words: Iterable[str]) -> str:
    return ", ".join(f"{number} {word}" for word, number in Counter(words).most_common())
