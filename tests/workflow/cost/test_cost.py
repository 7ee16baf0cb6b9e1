"""The command: what it says of tables, money, probes and wrong input."""

import json

import pytest

from methods import probe
from methods.core import paths, sealed
from tests.workflow.cost.plans import planned
from workflow.suite.__main__ import main
from workflow.suite.cost import devices
from workflow.suite.cost import runs as cost
from workflow.suite.cost.report import within
from workflow.suite.cost.runs import Cost


def call(capsys, *words):
    code = main(["cost", *words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_a_probe_becomes_a_cost_and_its_error_is_told(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(probe.POINTS, "cpu", [("rn18", 0.0625, 4), ("rn18", 0.0625, 16)])
    monkeypatch.setenv("SUITE_DEVICE", "cpu")
    file = tmp_path / paths.bench("probe")
    assert probe.main(["--out", str(file), "--repeats", "1"]) == 0
    device = devices.probed(file)
    assert device.measured
    assert "1 thread(s)" in device.title
    demo = planned("demo")
    made = json.loads(file.read_text())["provenance"]
    for number, run in enumerate(demo.final_runs("bn_ablation")[:3]):
        manifest = tmp_path / paths.train_manifest(run)
        manifest.parent.mkdir(parents=True)
        threads = 1 if number < 2 else 64
        seconds = 2 * cost.of_run(demo, run, device).train
        sealed.write(manifest, {"provenance": {**made, "threads": threads, "wall_seconds": seconds}})
    code, out, _ = call(capsys, "--directory", str(tmp_path), "--data-root", str(tmp_path), "--scale", "paper", "--table", "bn_ablation")
    assert code == 0
    assert "finished trainings of scale demo: median 0.50, four of five between 0.50 and 0.50 (2 of them)" in out
    assert "1 finished runs of other hardware" in out
    assert "measured: " in out


def test_tables_share_runs_and_the_total_counts_them_once(capsys, tmp_path):
    code, out, _ = call(capsys, "--scale", "paper", "--gpu", "v100", "--directory", str(tmp_path))
    assert code == 0
    assert "fp32: assumed: 57% of 15.7 TFLOP/s (367 images/s, NVIDIA DeepLearningExamples" in out
    assert "No price is known; --price states yours." in out
    assert "error of an assumed figure is not known" in out
    device, paper = devices.named("v100"), planned("paper")
    hours = {run: cost.of_run(paper, run, device) for run in paper.runs}
    total = sum(item.train + item.evaluate for item in hours.values()) / 3600
    line = next(line for line in out.splitlines() if line.startswith("all, each run once"))
    assert line.split()[4] == str(len(paper.runs))
    assert f"{total:,.2f}" in line
    tables = [sum(hours[run].train + hours[run].evaluate for run in cost.runs_of(paper, name)) / 3600 for name in paper.tables]
    assert all(f"{value:,.2f}" in out for value in tables)
    assert sum(tables) > total


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--gpu", "abacus"], "workflow/config/devices.yaml: no device is called 'abacus'; allowed: a100"),
        (["--probe", "nowhere.json"], "nowhere.json: no such file; measure with `python -m methods.probe"),
        (["--gpu", "a100", "--probe", "x.json"], "give one of them"),
        (["--table", "foo"], "no table is called 'foo'"),
        (["--row", "ours"], "--row ours: say of which table with --table"),
        (["--price", "-1"], "--price -1.0: a number of 0 or more"),
    ],
)
def test_wrong_input_is_one_line(capsys, words, message):
    code, out, err = call(capsys, *words)
    assert code == 2
    assert out == ""
    assert message in err
    assert err.count("\n") == 1


def test_money_rows_and_dearest_cells(capsys, tmp_path):
    code, out, _ = call(capsys, "--scale", "paper", "--gpu", "a100", "--price", "2", "--table", "bn_ablation", "--directory", str(tmp_path))
    assert code == 0
    assert "$2.00 per hour; --price states yours." in out
    line = next(line for line in out.splitlines() if line.startswith("bn_ablation")).split()
    assert float(line[6].replace(",", "")) == pytest.approx(2 * float(line[5].replace(",", "")), abs=0.02)
    device, paper = devices.named("a100"), planned("paper")
    hours = {cell.address: sum(cost.of_run(paper, run, device).usual for run in cell.runs) / 3600 for cell in paper.cells_of("bn_ablation")}
    first = out.splitlines()[next(i for i, text in enumerate(out.splitlines()) if "dearest cells" in text) + 2].split()
    assert float(first[2]) == pytest.approx(max(hours.values()), abs=0.01)
    row = paper.tables["bn_ablation"].rows[0].id
    code, part, _ = call(capsys, "--scale", "paper", "--gpu", "a100", "--table", "bn_ablation", "--row", row, "--directory", str(tmp_path))
    assert code == 0
    assert int(next(line for line in part.splitlines() if line.startswith("bn_ablation")).split()[1]) < int(line[1])


def test_a_budget_pays_for_the_cheapest_tables_and_for_shared_runs_once():
    costs = {run: Cost(train=3600.0 * hours) for run, hours in {"a": 1, "b": 2, "c": 3, "d": 9}.items()}
    tables = {"large": ["c", "d"], "small": ["a", "b"], "sharing": ["a", "b", "c"]}
    assert within(6.5, tables, costs) == [
        "6.50 hours pay for 2 of 3 tables, 6.00 h in all; not large",
        "  small: 3.00 h more",
        "  sharing: 3.00 h more",
    ]
    assert within(15, tables, costs)[0] == "15.00 hours pay for 3 of 3 tables, 15.00 h in all"
