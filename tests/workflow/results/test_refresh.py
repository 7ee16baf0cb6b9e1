"""What is stale is made again, and nothing else; one row is one command."""

import argparse
import csv
import os

import pytest

from methods.core import fingerprint, paths, sealed
from tests.workflow import finished
from tests.workflow.dry_run import jobs
from workflow.suite.__main__ import main
from workflow.suite.commands import snakemakes
from workflow.suite.cost import devices
from workflow.suite.jobs import forecast
from workflow.suite.jobs.console import Console
from workflow.suite.jobs.forecast import Forecast, Job
from workflow.suite.planning import plan
from workflow.suite.results import refresh
from workflow.suite.tables import render

TABLE, ROW, OTHER = "comparison_rn18_rn50", "rst", "hydra"


@pytest.fixture
def demo(tmp_path):
    return plan.load("demo", data_root=tmp_path / "none")


def made_by_this_code(planned, runs, folder):
    """Finished Runs, their parents too, whose files say that today's code made them."""
    finished.finish(planned, [item.name for run in runs for item in planned.lineage(run)], folder)
    for run in runs:
        for item in planned.lineage(run):
            record(folder / paths.train_manifest(item.name), fingerprint.of_training(item.spec["method"]))
        record(folder / paths.shard(run, planned.evaluations[run].id, 1, 1), fingerprint.of_evaluation())


def record(path, files):
    path.parent.mkdir(parents=True, exist_ok=True)
    value = sealed.read(path) if path.exists() else {}
    value.pop("sha256", None)
    sealed.write(path, value | {"provenance": {"files": files}})


def test_only_what_is_stale(demo, tmp_path):
    trained, evaluated, fresh = demo.final_runs("bn_ablation")[:3]
    made_by_this_code(demo, [trained, evaluated, fresh], tmp_path)
    assert refresh.find(demo, tmp_path).again == {}
    old = {**fingerprint.of_training("binary_subnet"), "methods/training/step.py": "0"}
    record(tmp_path / paths.train_manifest(trained), old)
    record(tmp_path / paths.shard(evaluated, demo.evaluations[evaluated].id, 1, 1), {"methods/evaluation/block.py": "0"})
    work = refresh.find(demo, tmp_path)
    numbers = [paths.evaluation(run, demo.evaluations[run].id) for run in (trained, evaluated)]
    assert work.again == {
        paths.train_manifest(trained): ["methods/training/step.py has changed"],
        numbers[1]: ["methods/evaluation/block.py has changed"],
    }
    assert work.targets == numbers, "a table that lacks numbers is not a reason to train them"
    assert refresh.find(demo, tmp_path, "vanilla").again == {}


def test_a_table_that_has_all_its_numbers_follows(demo, tmp_path):
    runs = demo.final_runs("bn_ablation")
    made_by_this_code(demo, runs, tmp_path)
    record(tmp_path / paths.train_manifest(runs[0]), {"methods/training/step.py": "0"})
    assert paths.table("demo", "bn_ablation", "md") not in refresh.find(demo, tmp_path).targets
    render.write_table(demo, "bn_ablation", tmp_path)
    assert refresh.find(demo, tmp_path).targets[-1] == paths.table("demo", "bn_ablation", "md")


def test_so_does_a_row_that_has_its_numbers(demo, tmp_path):
    [run, *others] = demo.final_runs("bn_ablation", "a1")
    made_by_this_code(demo, [run, *others], tmp_path)
    render.write_row(demo, "bn_ablation", "a1", tmp_path)
    assert refresh.find(demo, tmp_path).targets == []
    record(tmp_path / paths.train_manifest(run), {"methods/training/step.py": "0"})
    number = paths.evaluation(run, demo.evaluations[run].id)
    assert refresh.find(demo, tmp_path).targets == [number, paths.row("demo", "bn_ablation", "a1", "md")]


def test_the_command_says_what_there_is_to_do(demo, tmp_path, capsys):
    words = ["refresh", "--directory", str(tmp_path), "--data-root", str(tmp_path / "none")]
    assert main(words) == 0
    assert capsys.readouterr().out == "nothing is stale at scale demo\n"
    [run, *_] = demo.final_runs("bn_ablation")
    made_by_this_code(demo, [run], tmp_path)
    record(tmp_path / paths.train_manifest(run), {"methods/training/step.py": "0"})
    assert main(words) == 0
    assert f"{paths.train_manifest(run)}  methods/training/step.py has changed" in capsys.readouterr().out


def test_snakemake_makes_what_is_stale_and_leaves_the_rest(snakemake, demo):
    folder = snakemake.folder
    runs = demo.final_runs(TABLE, ROW)
    made_by_this_code(demo, runs, folder)
    record(folder / paths.train_manifest(runs[0]), {"methods/training/step.py": "0"})
    options = argparse.Namespace(directory=folder, cores=1, data_root=str(folder / "none"), seeds=None)
    code, output = snakemake("-n", *snakemakes.words(demo, options, refresh.find(demo, folder)))
    assert code == 0, output
    assert jobs(output)["train"] == 1
    assert jobs(output)["evaluate"] == 1


def test_a_row_that_is_trained_again_leaves_the_others_alone(snakemake, demo):
    rows = {row: demo.final_runs(TABLE, row) for row in (ROW, OTHER)}
    made_by_this_code(demo, [run for runs in rows.values() for run in runs], snakemake.folder)
    code, output = snakemake("-n", paths.row("demo", TABLE, ROW), "-R", "train", "--config", f"data_root={snakemake.folder / 'none'}")
    assert code == 0, output
    chain = {item.name for run in rows[ROW] for item in demo.lineage(run)}
    assert jobs(output)["train"] == len(chain)
    assert jobs(output)["evaluate"] == len(rows[ROW])


def test_a_row_in_every_format(demo, tmp_path):
    made_by_this_code(demo, demo.final_runs(TABLE, ROW), tmp_path)
    written = render.write_row(demo, TABLE, ROW, tmp_path)
    assert [str(path.relative_to(tmp_path)) for path in written] == [paths.row("demo", TABLE, ROW, kind) for kind in paths.FORMATS]
    lines = list(csv.DictReader(written[2].open()))
    assert {line["row"] for line in lines} == {ROW}
    assert len(lines) == len(demo.tables[TABLE].columns)
    assert {line["mark"] for line in lines} == {""}, "what it is the best of, other rows would have to tell"
    text = written[1].read_text()
    assert text.count(r" \\" + "\n") == 3, "two lines of heads, and the row"
    assert rf"\input{{{TABLE}.{ROW}}}" in text


def test_the_console_names_a_table_that_is_older_than_a_number_of_its_own(tmp_path):
    run = "at-cifar10-rn18-fp.0123456789ab"
    number, other = (paths.evaluation(run, digit * 12) for digit in "01")
    tables = [paths.table("demo", name, "md") for name in ("first", "second", "third")]
    seen = Console(tmp_path)
    seen.foresee(Forecast(shown_in={number: tuple(tables), other: (tables[1],)}))
    for name, age in ((tables[0], 10), (tables[1], -10), (number, 0)):  # the third was never rendered
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
        os.utime(tmp_path / name, (1e9 - age, 1e9 - age))
    seen.start(2, rule="evaluate", wildcards={"run": run}, outputs=[number], logs=[])
    seen.finish(2)
    assert seen.summary(None)[1:] == [f"Older than their numbers now: {tables[0]}. To refresh: snakemake --cores 1 {tables[0]}"]


def test_the_forecast_knows_which_tables_show_a_number(demo):
    [run] = demo.cells["bn_ablation.a1.lbn"].runs
    number = paths.evaluation(run, demo.evaluations[run].id)
    ahead = [Job(number=1, rule="evaluate", wildcards={"run": run}, outputs=(number,), needed=True)]
    tables = {paths.table("demo", cell.table, "md") for cell in demo.cells.values() if run in cell.runs}
    assert set(forecast.of(demo, devices.named("cpu"), ahead).shown_in[number]) == tables
