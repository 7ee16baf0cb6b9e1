"""Trust panels of cells: what stored evaluations show, cell by cell, on the command line and for the frame."""

from pathlib import Path

import pytest

from methods.core import trust as panels
from methods.core.trust import FAIL, NOT_APPLICABLE, PASS, WARN
from methods.core.trust_checks import CHECKS
from tests.workflow.results.panels import evaluate, measured
from workflow.suite.__main__ import main
from workflow.suite.planning import plan
from workflow.suite.planning.config import ROOT
from workflow.suite.results import trust
from workflow.suite.results.measure import measure

FINE = {"none": 40, "clean": 20, "apgd-ce": 30, "apgd-t": 10, "square": 0}


@pytest.fixture
def demo():
    return plan.load("demo", data_root=Path("none"))


@pytest.fixture
def cell(demo):
    return demo.cells["bn_ablation.a1.lbn"]


def test_an_evaluation_says_what_each_attack_broke(demo, cell, tmp_path):
    """100 images: 80 right, 50 after the first attack, 40 after the second, and Square breaks none."""
    value = evaluate(demo, cell.runs[0], tmp_path, FINE, panel=measured(temperature=PASS))
    panel = panels.of_evaluation(value)
    expected = "clean 80.0 %, apgd-ce 50.0 % (broke 30), apgd-t 40.0 % (broke 10), square 40.0 % (broke 0)"
    assert panel["attacks"].text == expected
    assert panel["attacks"].number == 0.4
    assert panel["square"].number == 0
    assert panel["warnings"].text == "none"
    assert panel.state == PASS
    assert panels.of_evaluation(dict(value, trust=panel.to_json())) == panel


@pytest.mark.parametrize(("broken", "state"), [(0, PASS), (2, PASS), (3, WARN), (20, WARN), (21, FAIL)])
def test_square_may_break_two_in_a_thousand(demo, cell, tmp_path, broken, state):
    counts = {"none": 400 - broken, "clean": 600, "apgd-ce": 0, "apgd-t": 0, "square": broken}
    value = evaluate(demo, cell.runs[0], tmp_path, counts)
    assert panels.of_evaluation(value)["square"].state == state


def test_without_a_measured_panel_the_answers_still_speak(demo, cell, tmp_path):
    value = evaluate(
        demo, cell.runs[0], tmp_path, {**FINE, "square": 5}, warnings=[{"kind": "dynamic", "attack": "checks", "message": "m"}]
    )
    assert value["trust"] is None
    panel = panels.of_evaluation(value)
    assert [check.name for check in panel.checks] == list(CHECKS)
    assert panel.named(FAIL) == ("warnings", "square")
    assert panel["temperature"].state == NOT_APPLICABLE
    assert "without the panel" in panel["temperature"].text


def test_nothing_is_said_where_nothing_was_attacked(demo, cell, tmp_path):
    value = evaluate(demo, cell.runs[0], tmp_path, {"none": 8, "clean": 2}, attack="clean")
    assert panels.of_evaluation(value) is None
    assert trust.columns(value) == {"trust": None, "trust_fail": None, "trust_warn": None}


def test_a_cell_is_as_doubtful_as_its_worst_seed(tmp_path):
    demo = plan.load("demo", data_root=Path("none"), seeds=(1, 2, 3))
    cell = demo.cells["bn_ablation.a1.lbn"]
    evaluate(demo, cell.runs[0], tmp_path, FINE, panel=measured(temperature=PASS))
    evaluate(demo, cell.runs[2], tmp_path, FINE, panel=measured(temperature=WARN, gradients=FAIL))
    item = trust.of_cell(measure(demo, cell, tmp_path))
    assert list(item.panels) == [cell.runs[0], cell.runs[2]]
    assert item.state == FAIL
    assert item.reason == "fail: gradients; warn: temperature"
    assert trust.of_run(demo, cell.runs[1], tmp_path) is None
    assert trust.of_run(demo, cell.runs[2], tmp_path).state == FAIL


def test_the_frame_has_the_state_and_what_is_wrong(demo, cell, tmp_path):
    value = evaluate(demo, cell.runs[0], tmp_path, FINE, panel=measured(temperature=FAIL, iterations=FAIL, gradients=WARN))
    assert trust.columns(value) == {"trust": FAIL, "trust_fail": "temperature iterations", "trust_warn": "gradients"}


@pytest.fixture
def call(tmp_path, capsys):
    def run(*words):
        code = main(["trust", *words, "--directory", str(tmp_path)])
        return code, capsys.readouterr().out

    return run


def test_the_command_counts_and_lists(demo, cell, tmp_path, call):
    evaluate(demo, cell.runs[0], tmp_path, FINE, panel=measured(temperature=WARN))
    evaluate(demo, demo.cells["bn_ablation.a01.lbn"].runs[0], tmp_path, FINE, panel=measured(temperature=PASS))
    code, out = call("--table", "bn_ablation", "--strict")
    assert code == 0
    assert "2 evaluated cells: 1 pass, 1 warn, 0 fail, 0 not applicable." in out
    assert out.index("2 evaluated cells") < out.index(f"{cell.address}: 40.00 [30.94, 49.80]")
    counts = next(line.split() for line in out.splitlines() if line.startswith("temperature"))
    assert counts[1:5] == ["1", "1", "0", "0"]
    assert "warn           temperature     25.00 %  the sentence of temperature [Gupta and Ajanthan 2021" in out
    for about in CHECKS.values():
        assert about.margin in out


def test_strict_is_an_exit_code_for_failures(demo, cell, tmp_path, call):
    evaluate(demo, cell.runs[0], tmp_path, FINE, panel=measured(temperature=FAIL))
    assert call()[0] == 0
    assert call("--strict")[0] == 1
    assert call("--strict", "--table", "sp_ratio")[0] == 0


def test_an_empty_result_has_no_panels(call):
    assert "0 evaluated cells" in call()[1]


def test_the_page_of_the_panel_names_every_check():
    lines = (ROOT / "docs" / "trust.md").read_text().splitlines()
    for name, about in CHECKS.items():
        assert f"| `{name}` | {about.question} | {about.number} | {about.margin} | {about.citation} |" in lines
