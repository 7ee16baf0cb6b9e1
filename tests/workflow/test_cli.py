"""The suite's command line."""

import json

import pytest

from methods.core import paths
from workflow.suite.__main__ import main
from workflow.suite.planning import plan


@pytest.fixture
def demo(tmp_path):
    return plan.load("demo", data_root=tmp_path)


@pytest.fixture
def call(tmp_path, capsys):
    def run(*words):
        code = main([*words, "--directory", str(tmp_path / "work"), "--data-root", str(tmp_path)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def test_status_counts_every_cell(call, demo, finish):
    code, out, _ = call("status")
    assert code == 0
    total = next(line.split() for line in out.splitlines() if line.startswith("all "))
    assert sum(map(int, total[1:])) == len(demo.cells)
    assert total[1] == "0"
    assert sum(demo.tables[cell.table].number is not None for cell in demo.cells.values()) == 513
    run = demo.cells["bn_ablation.a1.lbn"].runs[0]
    finish(demo, run, n_clean=3, n_robust=1)
    _, out, _ = call("status")
    users = sum(run in cell.runs for cell in demo.cells.values())
    total = next(line.split() for line in out.splitlines() if line.startswith("all "))
    assert total[1:3] == ["0", str(users)], "a number whose training is not there is stale"
    assert "Runs: 0 evaluated, 1 stale, 0 evaluating, 0 trained" in out
    assert "stale, 1 runs: train.json is gone" in out


def test_status_tells_the_stages_apart(call, demo, finish):
    started, trained = demo.final_runs("bn_ablation")[:2]
    (finish.folder / paths.state_folder(started)).mkdir(parents=True)
    manifest = finish.folder / paths.train_manifest(trained)
    manifest.parent.mkdir(parents=True)
    manifest.write_text("{}")
    assert "1 trained, 0 training, 1 stopped, 0 failed" in call("status")[1]


def test_show_a_cell_prints_the_spec_that_training_takes(call, demo):
    code, out, _ = call("show", "main_comparison.ours.cifar10-binary")
    run = demo.runs[demo.cells["main_comparison.ours.cifar10-binary"].runs[0]]
    assert code == 0
    assert json.loads(out[out.index("\n{") :]) == run.spec
    assert paths.run_folder(run.name) in out
    assert "bn_ablation.a0001.lbn" in out


def test_show_a_run_by_the_start_of_its_id(call, demo):
    run = next(iter(demo.runs.values()))
    for what in (run.id, run.id[:10], run.name):
        code, out, _ = call("show", what)
        assert code == 0
        assert out.startswith(f"run {run.id}: waiting")


def test_show_a_row_and_a_table(call):
    assert call("show", "bn_ablation.a1")[1].count("bn_ablation.a1.") == 2
    assert call("show", "bn_ablation")[1].count("not run") == 8


def test_plan_lists_runs_and_counts(call, demo):
    code, out, _ = call("plan")
    assert code == 0
    assert out.splitlines()[-1].startswith(
        f"{len(demo.cells)} cells, 446 numbers of the paper; {len(demo.final_runs())} distinct final Runs"
    )
    assert len(out.splitlines()) == len(demo.runs) + 1
    assert call("plan", "--table", "bn_ablation")[1].splitlines()[-1].startswith("8 cells, 8 numbers of the paper; 8 distinct")


def test_rows_name_targets(call):
    out = call("rows", "--table", "main_comparison")[1]
    assert "reports/demo/rows/main_comparison.hydra.md" in out
    assert len(out.splitlines()) == 13


def test_render_shows_what_is_finished(call, demo, finish):
    finish(demo, demo.cells["bn_ablation.a1.lbn"].runs[0], n_clean=32, n_robust=16)
    code, out, _ = call("render", "--table", "bn_ablation")
    assert code == 0
    assert len(out.splitlines()) == 3
    text = (finish.folder / paths.table("demo", "bn_ablation", "md")).read_text()
    assert "**25.00** [16.01, 36.82] / 44.41" in text
    assert "· / 31.04" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["plan", "--scale", "huge"], "workflow/config/scales: no scale is called 'huge'; allowed: demo, lite, paper"),
        (["plan", "--table", "foo"], "workflow/config/tables: no table is called 'foo'; allowed: sp_ratio, bn_ablation"),
        (["show", "foo"], "no table is called 'foo'"),
        (["show", "vanilla.foo"], "workflow/config/tables/vanilla.yaml: no row is called 'foo'; allowed: at, at-lbn"),
        (["show", "vanilla.at.foo"], "workflow/config/tables/vanilla.yaml: no column is called 'foo'; allowed: cifar10-fp"),
        (["show", "0000000000"], "no Run of scale 'demo' match '0000000000'"),
        (["render", "--table", "foo"], "no table is called 'foo'"),
    ],
)
def test_wrong_input_is_one_line_and_exit_code_2(call, tmp_path, words, message):
    code, out, err = call(*words)
    assert code == 2
    assert out == ""
    assert err.startswith("error: ")
    assert message in err
    assert err.count("\n") == 1
    assert not (tmp_path / "work").exists()


def test_partial_prints_what_is_finished(call, demo, finish):
    finish(demo, demo.cells["bn_ablation.a1.lbn"].runs[0], n_clean=32, n_robust=16)
    code, out, _ = call("partial", "bn_ablation")
    assert code == 0
    assert "**25.00** [16.01, 36.82] / 44.41" in out
    assert "· / 31.04" in out
    assert not (finish.folder / "reports").exists()


def test_partial_writes_every_format(call, finish):
    code, out, _ = call("partial", "bn_ablation", "--write")
    written = [finish.folder / paths.partial("demo", "bn_ablation", kind) for kind in paths.FORMATS]
    assert code == 0
    assert out.split() == list(map(str, written))
    assert all(path.is_file() for path in written)


def test_claims_command(call):
    code, out, _ = call("claims")
    assert code == 0
    assert out.count("\n| C") == 100
    assert "The paper's own numbers: 52 TRUE, 36 FALSE" in out
