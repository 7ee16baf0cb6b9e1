"""Signs at numbers whose trust panel warns or fails: in every format, with a legend where one occurs and none elsewhere."""

import csv
import io
from pathlib import Path

import pytest

from methods.core.trust import FAIL, PASS, WARN
from methods.core.trust_checks import CHECKS
from tests.workflow.results.panels import evaluate, measured
from workflow.suite.page import render
from workflow.suite.page import tables as page_tables
from workflow.suite.planning import plan
from workflow.suite.results.show import show
from workflow.suite.tables import latex, markdown, sheet

FINE = {"none": 40, "clean": 20, "apgd-ce": 30, "apgd-t": 10}
WARNS, FAILS = "†: a check of the trust panel warns", "‡: a check of the trust panel fails"


@pytest.fixture
def small(repository):  # noqa: F811
    return plan.load("demo", data_root=Path("none"), root=repository)


@pytest.fixture
def folder(small, tmp_path):
    """Of the full-precision column one number is trusted; of the binary column one is doubtful and one fails."""
    for address, state in {"other.fp": PASS, "other.binary": WARN, "ours.binary": FAIL}.items():
        evaluate(small, small.cells[f"small.{address}"].runs[0], tmp_path, FINE, panel=measured(temperature=state, gradients=PASS))
    return tmp_path


def test_markdown(small, folder):
    text = markdown.table(small, "small", folder, made_by="x")
    assert "| <u>40.00</u> [30.94, 49.80] / <u>30.00</u>" in text
    assert "| **40.00**† [30.94, 49.80] / -" in text
    assert "| **40.00**‡ [30.94, 49.80] / **45.06**" in text
    assert WARNS in text
    assert FAILS in text
    row = markdown.row(small, "small", "ours", folder, made_by="x")
    assert "40.00‡ [30.94, 49.80]" in row
    assert WARNS not in row
    assert FAILS in row


def test_latex(small, folder):
    text = latex.table(small, "small", folder, made_by="x")
    assert r"\bfseries 40.00 {$^{\dagger}$} & {--}" in text
    assert r"\bfseries 40.00 {$^{\ddagger}$\textsuperscript{2}} & \bfseries 45.06" in text
    assert r"$\ddagger$: a check of the trust panel fails" in text


def test_csv(small, folder):
    lines = {(line["row"], line["column"]): line for line in csv.DictReader(io.StringIO(sheet.table(small, "small", folder)))}
    assert (lines["other", "fp"]["trust"], lines["other", "fp"]["doubts"]) == ("pass", "")
    assert (lines["ours", "binary"]["trust"], lines["ours", "binary"]["doubts"]) == ("fail", "fail: temperature")
    assert lines["ref", "fp"]["trust"] == ""


def test_page(small, folder):
    rows = page_tables.results(small, "small", folder, {})["rows"]
    fine, failing = rows[1]["cells"][0], rows[2]["cells"][1]
    assert (fine["doubt"], failing["doubt"]) == ("", "‡")
    assert "(trust panel: fail: temperature)" in failing["spoken"]
    details = dict(failing["lines"])
    assert details["Trust"] == [{"text": "fail, 4 of 5 checks pass; fail: temperature"}]
    checks = [entry["text"] for entry in details["Checks"]]
    assert f"temperature, fail: the sentence of temperature [{CHECKS['temperature'].citation}]" in checks
    attacks = "attacks, pass: clean 80.0 %, apgd-ce 50.0 % (broke 30), apgd-t 40.0 % (broke 10), square 40.0 % (broke 0)"
    assert f"{attacks} [{CHECKS['attacks'].citation}]" in checks


def test_the_legend_of_the_page(tmp_path):
    demo = plan.load("demo", data_root=Path("none"))
    assert "trust panel" not in render.page(demo, tmp_path, made_by="x")
    evaluate(demo, demo.cells["bn_ablation.a1.lbn"].runs[0], tmp_path, FINE, panel=measured(temperature=FAIL))
    text = render.page(demo, tmp_path, made_by="x")
    assert '<span class="ours bold">40.00‡</span>' in text
    assert FAILS in text
    assert WARNS not in text


def test_show(small, folder):
    assert "trust: fail, 4 of 5 checks pass; fail: temperature" in show(small, "small.ours.binary", folder)
    assert "the sentence of temperature [Gupta" in show(small, small.cells["small.ours.binary"].runs[0], folder)


def test_nothing_is_said_where_nothing_is_doubtful(small, tmp_path):
    evaluate(small, small.cells["small.other.fp"].runs[0], tmp_path, FINE, panel=measured(temperature=PASS))
    texts = [markdown.table(small, "small", tmp_path, made_by="x"), latex.table(small, "small", tmp_path, made_by="x")]
    assert page_tables.results(small, "small", tmp_path, {})["doubts"] == []
    for text in (*texts, markdown.row(small, "small", "other", tmp_path, made_by="x")):
        assert "†" not in text
        assert "dagger" not in text
        assert "trust panel" not in text
