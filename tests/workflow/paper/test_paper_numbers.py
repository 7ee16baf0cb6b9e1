"""The declared tables are the paper's: every number, mark, label and their order."""

import os
from pathlib import Path

import pytest

from tests.workflow.paper.latex_tables import declared, digest, from_latex
from workflow.suite.planning.tables import load_tables
from workflow.suite.tables import marks

# Made from the paper's LaTeX source, not from the declarations: see latex_tables.py.
DIGESTS = {
    "bn_ablation": "edd33983e7be6566",
    "comparison_rn18_rn50": "b0921a364a6711c1",
    "comparison_vanilla": "9ddb98d5f7398fb9",
    "complete_comparison": "fc3522da4a0caed2",
    "main_ablation": "c9dc3aedacf89060",
    "main_comparison": "493a4f2f310aa163",
    "sp_ratio": "dd1f5754084e2e94",
    "vanilla": "5f3042abe0f829f6",
    "vanilla_ablation": "19e8893cbba48c5d",
}
TABLES = {name: table for name, table in load_tables().items() if table.number is not None}


def test_all_nine_tables_are_declared():
    assert sorted(TABLES) == sorted(DIGESTS)
    cells = [cell for table in TABLES.values() for row in table.rows for cell in row.cells]
    assert len(cells) == 513
    assert sum(cell.value is not None for cell in cells) == 446


@pytest.mark.parametrize("name", DIGESTS)
def test_numbers_marks_and_order_are_the_papers(name):
    """Always against the digest of the source; with PAPER_TEX=<file> in the environment also entry by entry."""
    lines = declared(TABLES[name])
    source = os.environ.get("PAPER_TEX")
    if source:
        printed = from_latex(Path(source).read_text(encoding="utf-8"), TABLES[name])
        assert lines == printed
        assert digest(printed) == DIGESTS[name]
    assert digest(lines) == DIGESTS[name]


@pytest.mark.parametrize("name", DIGESTS)
def test_the_marking_rule_gives_the_papers_marks(name):
    table = TABLES[name]
    pairs = [(row, column.id, cell) for row in table.rows for column, cell in zip(table.columns, row.cells, strict=True)]
    values = {(row.id, column): cell.value for row, column, cell in pairs if cell.value is not None}
    printed = {(row.id, column): cell.mark for row, column, cell in pairs if cell.mark}
    assert marks.best(table, values) == printed


def test_extractor_reads_marks_spans_and_colours():
    table = TABLES["main_comparison"]
    source = r"""
    \begin{tabular}{lll} heading & x & y & z \\ \hline
    A & RN & $p = 0.1$ & \underline{1.00} & - & \mycolour{2.50} & 3.00 & \multirow{2}{*}{-} & \multirow{2}{*}{\textbf{9.04}} \\
    \hdashline
    B & RN & $p=1.0$ & 4.00 & 5.00 & 6.00 & 7.00 & & \\
    \Xhline{4\arrayrulewidth}
    \end{tabular} \label{tbl:main comparison}"""
    assert from_latex(source, table) == [
        (("A", "RN", "p=0.1"), ("1.00 underline", "-", "2.50", "3.00", "shared", "shared")),
        (("B", "RN", "p=1.0"), ("4.00", "5.00", "6.00", "7.00", "-", "9.04 bold")),
    ]


def test_a_changed_number_or_mark_changes_the_digest():
    lines = declared(TABLES["bn_ablation"])
    assert digest([*lines[:-1], (lines[-1][0], ("31.04", "44.42"))]) != digest(lines)
    assert digest([*lines[:-1], (lines[-1][0], ("31.04", "44.41 bold"))]) != digest(lines)
    assert digest(lines[::-1]) != digest(lines)
