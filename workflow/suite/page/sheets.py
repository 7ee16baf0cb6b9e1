"""Tables of the page that come as sheets: closed forms, differences, claims."""

import csv
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from markupsafe import Markup, escape

from methods.core import paths
from workflow.suite.page.details import Verdict
from workflow.suite.paper import closed_tables
from workflow.suite.paper.claims import evidence, verdicts
from workflow.suite.planning.plan import Plan
from workflow.suite.results import compare
from workflow.suite.tables import inert


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """A titled table of texts; `marked` are the columns whose words have colours."""

    name: str
    title: str
    texts: Sequence[str]
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    marked: Sequence[int] = field(default=())


def closed(plan: Plan) -> list[Sheet]:
    """The tables that need no Run."""
    paper = evidence.of_paper(plan.tables)
    found = [make(paper) for make in closed_tables.TABLES.values()]
    return [
        Sheet(
            name=table.name,
            title=table.title,
            texts=[table.caption],
            heads=table.heads,
            rows=[[formula(text) if place in table.formulas else text for place, text in enumerate(row)] for row in table.rows],
        )
        for table in found
    ]


def differences(plan: Plan, folder: Path) -> Sheet | None:
    """Every cell against the paper's, where the comparison has been made."""
    lines = read(folder / paths.diff(plan.scale.name, "csv"))
    if lines is None:
        return None
    counts = Counter(line["verdict"] for line in lines)
    summary = f"{len(lines)} cells: " + ", ".join(f"{counts[word]} {word}" for word in compare.VERDICTS) + "."
    return _sheet("diff", "Differences", [summary, emphasis(compare.RULE)], lines, marked=("verdict",))


def cell_verdicts(plan: Plan, folder: Path) -> dict[str, Verdict]:
    """Cell -> what the comparison says of it."""
    lines = read(folder / paths.diff(plan.scale.name, "csv")) or []
    return {f"{line['table']}.{line['row']}.{line['column']}": Verdict(word=line["verdict"], why=line["why"]) for line in lines}


def claims(plan: Plan, folder: Path) -> Sheet | None:
    """The paper's claims, where they have been tested."""
    lines = read(folder / paths.claims(plan.scale.name, "csv"))
    if lines is None:
        return None
    texts = []
    for key, whose, words in (("paper", "the paper's", verdicts.PAPER), ("ours", "our", verdicts.OURS)):
        meanings = "; ".join(f"{word}: {text}" for word, text in words.items())
        texts.append(f"On {whose} numbers: {_counted(line[key] for line in lines)}. {meanings}.")
    return _sheet("claims", "Claims", texts, lines, marked=("paper", "ours"))


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


def _sheet(name: str, title: str, texts: list[str], lines: list[dict[str, str]], marked: tuple[str, ...]) -> Sheet:
    heads = list(lines[0]) if lines else []
    return Sheet(
        name=name,
        title=title,
        texts=texts,
        heads=[head.replace("_", " ") for head in heads],
        rows=[list(line.values()) for line in lines],
        marked=[place for place, head in enumerate(heads) if head in marked],
    )


def _counted(words: Iterable[str]) -> str:
    return ", ".join(f"{number} {word}" for word, number in Counter(words).most_common())
