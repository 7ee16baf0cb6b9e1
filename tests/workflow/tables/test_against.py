"""A column that names another is held against it, image by image, under every form of its table."""

import csv
import io
from pathlib import Path

import pytest

from methods.core.errors import UserError
from tests.workflow.results.outcomes import right, write
from workflow.suite.page import tables as page_tables
from workflow.suite.planning import plan
from workflow.suite.planning.tables import load_table
from workflow.suite.results import versus
from workflow.suite.results.measure import measure_table
from workflow.suite.tables import latex, markdown, sheet

TABLE = "bf16_equivalence"
OWN = """
title: Mine
metric: robust_acc
stub: [Method]
columns: [{{id: a, head: [A]}}, {{id: b, head: [B], against: {against}}}]
rows: [{{id: net, labels: [AT], run: {{method: at, dataset: cifar10, arch: rn18, precision: fp}}}}]
"""


@pytest.fixture
def lite():
    return plan.load("lite", data_root=Path("none"))


@pytest.fixture
def folder(lite, tmp_path):
    """AT: 5 images lost, 2 gained; ours: 40 lost, 30 gained; HYDRA has no second number."""
    for row, fp32, bf16 in (("at", [(0, 500)], [(0, 495), (600, 602)]), ("ours", [(0, 500)], [(40, 500), (600, 630)])):
        write(lite, tmp_path, f"{TABLE}.{row}.fp32", right(*fp32))
        write(lite, tmp_path, f"{TABLE}.{row}.bf16", right(*bf16))
    write(lite, tmp_path, f"{TABLE}.hydra.bf16", right((0, 300)))
    return tmp_path


def test_cells_are_held_against_those_of_the_other_column(lite, folder):
    """2 (1 + 7 + 21) / 128 for two of seven; with 70 of 1000 images discordant, McNemar's test finds 2.34 points in four of five cases."""
    compared = versus.against_columns(lite.table(TABLE), measure_table(lite, TABLE, folder))
    assert list(compared) == [("at", "bf16"), ("ours", "bf16")]
    at, ours = compared.values()
    assert at.difference == pytest.approx(-0.003)
    assert at.p == pytest.approx(58 / 128)
    assert ours.could_show == pytest.approx(0.0234, abs=5e-5)


def test_every_form_of_the_table_says_so(lite, folder):
    at, ours = "against float32: -0.30 points", "against float32: -1.00 points"
    expected = [at, "p = 0.453", ours, "2.34 points would have been seen in four of five such experiments"]
    texts = [render(lite, TABLE, folder, made_by="test") for render in (markdown.table, latex.table)]
    texts.append("".join(line["notes"] for line in csv.DictReader(io.StringIO(sheet.table(lite, TABLE, folder)))))
    shown = page_tables.results(lite, TABLE, folder, {})["rows"]
    texts.append(str([cell["lines"] for row in shown for cell in row["cells"]]))
    for text in texts:
        assert [words for words in expected if words not in text] == []
        assert text.count("against float32") == 2
    assert [cell["noted"] for row in shown for cell in row["cells"]].count(True) == 2
    row = markdown.row(lite, TABLE, "at", folder, made_by="test")
    assert at in row
    assert ours not in row


def test_a_column_that_is_not_there_is_refused(tmp_path):
    path = tmp_path / "tables" / "mine.yaml"
    path.parent.mkdir()
    path.write_text(OWN.format(against="a"))
    assert load_table("mine", tmp_path).columns[1].against == "a"
    for wrong in ("b", "fp32"):
        path.write_text(OWN.format(against=wrong))
        with pytest.raises(UserError, match=f"column 'b': against: no other column is called '{wrong}'; allowed: a"):
            load_table("mine", tmp_path)
