"""The command diff between two sets of results: folders, frames, scales, seeds."""

import dataclasses
import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

from methods.core import paths
from tests.workflow.results.told import lines_of, told
from workflow.suite.planning import plan
from workflow.suite.results import result_sets
from workflow.suite.tables import render

CELL = "bn_ablation.a1.lbn"


@pytest.fixture(scope="module")
def demo():
    return plan.load("demo", data_root=Path("none"))


@pytest.fixture
def call(tmp_path, capsys):
    return lambda *words: told(capsys, *words, "--data-root", str(tmp_path), "--table", "bn_ablation")


@pytest.fixture
def two(demo, finish, tmp_path):
    """Two folders with results that differ in one cell, and the files of a frame of the second."""
    for address, hits in {"a1.lbn": 32, "a1.no-lbn": 10, "a01.lbn": 20}.items():
        finish(demo, demo.cells[f"bn_ablation.{address}"].runs[0], n_clean=60, n_robust=hits)
    second = tmp_path / "second"
    shutil.copytree(finish.folder, second)
    finish(demo, demo.cells[CELL].runs[0], n_clean=60, n_robust=2)
    run = demo.cells["bn_ablation.a01.lbn"].runs[0]
    (second / paths.evaluation(run, demo.evaluations[run].id)).unlink()
    return finish.folder, second, *render.write_frame(demo, second)


@pytest.mark.parametrize("kind", ["folder", "results", "parquet", "csv"])
def test_two_sets_of_results(call, two, kind):
    first, second, parquet, csv = two
    other = str({"folder": second, "results": second / "results", "parquet": parquet, "csv": csv}[kind])
    code, out, _ = call("diff", str(first), other)
    assert code == 0
    lines = lines_of(out)
    assert [(line["row"], line["column"], line["verdict"]) for line in lines] == [
        ("a1", "lbn", "higher"),
        ("a1", "no-lbn", "reproduced"),
        ("a01", "lbn", "missing<sup>1</sup>"),
    ]
    assert [lines[0][key].replace("\\", "") for key in (other, str(first), "difference")] == ["50.00", "3.12", "+46.88"]
    assert f"no number in {other}" in out.replace("\\", "")


def test_strict_between_two_sets(call, two):
    first, second, *_ = map(str, two)
    assert call("diff", first, first, "--strict")[0] == 0
    assert call("diff", first, second, "--strict")[0] == 1


def test_one_set_given_twice_has_two_columns(call, two):
    first = str(two[0])
    assert {f"{first} (1st)", f"{first} (2nd)"} <= {name.replace("\\", "") for name in lines_of(call("diff", first, first)[1])[0]}


def test_two_scales_are_not_comparable(call, two, demo, tmp_path):
    first, *_ = two
    code, out, _ = call("diff", "demo", "lite", "--directory", str(first))
    assert code == 0
    assert "3 missing" in out
    sets = [result_sets.load(name, demo, folder=first, data_root=tmp_path) for name in ("demo", "demo")]
    (one, *_) = result_sets.diff(sets[0], dataclasses.replace(sets[1], scale="lite"), "bn_ablation")
    assert (one.verdict, one.why) == ("not comparable", "scales demo and lite")


def test_an_empty_set_has_a_hint(call, two):
    out = call("diff", "demo", "lite", "--directory", str(two[0]))[1]
    assert "lite has no numbers yet: `snakemake --cores 8 all_tables --config scale=lite` makes them" in out
    assert "demo has no numbers" not in out


@pytest.fixture
def seeds(tmp_path, finish):
    """A folder and a frame with other seeds than the scale's."""
    planned = plan.load("demo", data_root=Path("none"), seeds=(1, 2, 3))
    for run, hits in zip(planned.cells[CELL].runs, (30, 32, 34), strict=True):
        finish(planned, run, n_clean=60, n_robust=hits)
        (finish.folder / paths.spec(run)).write_text(json.dumps(planned.runs[run].spec))
    other = tmp_path / "seeds"
    shutil.copytree(finish.folder, other)
    shutil.rmtree(finish.folder / "results")
    return {"folder": other, "parquet": render.write_frame(planned, other)[0]}


@pytest.mark.parametrize("kind", ["folder", "parquet"])
def test_sets_that_differ_in_seeds_are_compared(call, demo, finish, seeds, kind):
    finish(demo, demo.cells[CELL].runs[0], n_clean=60, n_robust=31)
    (line,) = lines_of(call("diff", str(finish.folder), str(seeds[kind]))[1])
    assert line["verdict"] == "reproduced"
    assert line["difference"] == "+1.56"  # 32 of 64 in the mean, against 31


def test_seeds_of_one_folder_are_two_sets(call, seeds):
    (line,) = lines_of(call("diff", "demo:1", "demo:2,3", "--directory", str(seeds["folder"]))[1])
    assert (line["demo:1"], line["demo:2,3"], line["verdict"]) == ("46.88", "51.56", "reproduced")


def test_a_frame_of_other_runs_is_refused(call, two, tmp_path):
    frame = pd.read_parquet(two[2])
    strange = tmp_path / "strange.parquet"
    frame.assign(run="at.000000000000").to_parquet(strange)
    assert "none of its 1 Runs is planned at scale demo" in call("diff", str(two[2]), str(strange))[2]
    frame.replace({"run": {frame["run"].iloc[-1]: "at.000000000000"}}).to_parquet(strange)
    assert "1 of its Runs are not planned here" in call("diff", str(two[2]), str(strange))[1]


def test_a_damaged_spec_is_one_line(call, seeds):
    next(seeds["folder"].glob(paths.spec("*"))).write_text("{")
    assert "spec.json: is not the spec of a Run" in call("diff", str(seeds["folder"]), "demo")[2]


def test_named_seeds_are_all_that_a_set_has(tmp_path):
    """Also where the scale gives some cells more of them."""
    lite = plan.load("lite", data_root=tmp_path)
    assert lite.scale.seeds == (1234,)
    assert {seed for cell in lite.cells.values() for seed in lite.seeds_of(cell)} > {1234}
    named = result_sets.load("lite:1234", lite, folder=tmp_path, data_root=tmp_path)
    assert {len(item.cell.runs) for item in named.cells.values()} == {0, 1}
