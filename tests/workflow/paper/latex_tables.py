"""Reads results tables out of the paper's LaTeX source, and gives tables a digest.

Run as a program, `python -m tests.workflow.paper.latex_tables PAPER.tex` prints the digest of each results table: the constants of
test_paper_numbers.py come from there.
"""

import hashlib
import re
import sys
from pathlib import Path

from workflow.suite.planning.tables import Table, load_tables

MARKS = {"textbf": "bold", "underline": "underline"}
Entry = str  # "45.06", "45.06 bold", "-" or "shared"
Line = tuple[tuple[str, ...], tuple[Entry, ...]]


def from_latex(source: str, table: Table) -> list[Line]:
    """(labels, entries) of every row of the tabular that stands before the table's label."""
    before = source[: source.index(rf"\label{{{table.label}}}")]
    start, end = before.rindex(r"\begin{tabular}"), before.rindex(r"\end{tabular}")
    body = before[start:end]
    body = body[body.index(r"\hline") :]  # what comes before is the heading
    body = re.sub(r"\\hdashline|\\hline|\\Xhline\{[^}]*\}", "", body)
    lines, carried = [], {}
    for text in body.split(r"\\"):
        cells = [cell.strip() for cell in text.split("&")]
        if len(cells) <= len(table.stub):
            continue
        labels = tuple(plain(cell) for cell in cells[: len(table.stub)])
        entries = [carried.pop(at, "") for at in range(len(table.columns))]
        for at, cell in enumerate(cells[len(table.stub) :]):
            spanning = re.fullmatch(r"\\multirow\{2\}\{\*\}\{(.*)\}", cell)
            if spanning:  # printed once for two rows: it belongs to the lower one
                carried[at] = entry(spanning.group(1))
                entries[at] = "shared"
            elif cell:
                entries[at] = entry(cell)
        lines.append((labels, tuple(entries)))
    return lines


def declared(table: Table) -> list[Line]:
    """The same of a declared table."""
    return [(tuple(plain(label) for label in row.labels), tuple(_declared(cell) for cell in row.cells)) for row in table.rows]


def digest(lines: list[Line]) -> str:
    """A short hash of all labels, numbers and marks in print order."""
    text = "\n".join(" | ".join([*labels, *entries]) for labels, entries in lines)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def entry(cell: str) -> Entry:
    """A number with its mark, without the authors' revision colours."""
    marks = [name for macro, name in MARKS.items() if rf"\{macro}" in cell]
    return " ".join([re.sub(r"\\[a-z]+|[{}\s]", "", cell), *marks])


def plain(label: str) -> str:
    """A label without mathematics and spaces."""
    return re.sub(r"[$\s]", "", label)


def _declared(cell) -> Entry:
    if cell.value is None:
        return "shared" if cell.shared else "-"
    return " ".join(filter(None, [f"{cell.value:.2f}", cell.mark]))


if __name__ == "__main__":
    paper = Path(sys.argv[1]).read_text(encoding="utf-8")
    for name, shape in load_tables().items():
        print(f'    "{name}": "{digest(from_latex(paper, shape))}",')
