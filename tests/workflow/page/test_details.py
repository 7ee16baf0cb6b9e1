"""What a cell's detail says of its trust panel."""

from pathlib import Path

from methods.core.trust import WARN
from methods.core.trust_checks import CHECKS
from tests.workflow.results.panels import evaluate, measured
from workflow.suite.page import details
from workflow.suite.planning import plan
from workflow.suite.results.measure import measure


def test_every_check_stands_with_its_state_and_where_it_is_from(tmp_path):
    demo = plan.load("demo", data_root=Path("none"))
    cell = demo.cells["bn_ablation.a1.lbn"]
    counts = {"none": 40, "clean": 20, "apgd-ce": 30, "apgd-t": 10, "square": 0}
    evaluate(demo, cell.runs[0], tmp_path, counts, panel=measured(temperature=WARN))
    shelf = details.Shelf(plan=demo, folder=tmp_path)
    lines = dict(details.lines(measure(demo, cell, tmp_path), shelf, None))
    checks = {entry["text"].partition(",")[0]: entry["text"] for entry in lines["Checks"]}
    assert list(checks) == ["attacks", "warnings", "square", "temperature"], "three read from the answers, one measured"
    assert checks["temperature"] == f"temperature, warn: the sentence of temperature [{CHECKS['temperature'].citation}]"
