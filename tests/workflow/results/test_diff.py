"""The command diff against the paper: summary first, the largest differences on top, exit codes."""

from pathlib import Path

import pytest

from methods.core import paths, sealed
from tests.workflow.results.recorded import CURRENT, N, record_code
from tests.workflow.results.told import lines_of, told
from workflow.suite.planning import config, plan
from workflow.suite.results import compare

TABLE = "bn_ablation"


@pytest.fixture(scope="module")
def demo():
    return plan.load("demo", data_root=Path("none"))


@pytest.fixture
def paper(tmp_path):
    return plan.load("paper", data_root=tmp_path)


@pytest.fixture
def call(tmp_path, capsys):
    return lambda *words: told(capsys, *words, "--data-root", str(tmp_path))


def write(planned, folder, cell, percent):
    """An evaluation at scale paper, by the code that lies here."""
    (run,) = cell.runs
    path = folder / paths.evaluation(run, planned.evaluations[run].id)
    path.parent.mkdir(parents=True, exist_ok=True)
    hits = round(percent * N / 100)
    sealed.write(path, {"clean_acc": 0.9, "n": N, "n_clean": 9000, "robust_acc": hits / N, "n_robust": hits})
    record_code(folder, planned, run, CURRENT)


@pytest.fixture
def off(paper, tmp_path):
    """All cells of a table at scale paper; the first is 2 points lower, the second 5 higher than printed."""
    for cell, apart in zip(paper.cells_of(TABLE), (-2, 5, 0, 0, 0, 0, 0, 0), strict=True):
        write(paper, tmp_path / "work", cell, cell.reported.value + apart)
    return ["diff", "--scale", "paper", "--table", TABLE, "--directory", str(tmp_path / "work")]


def test_a_reduced_scale_is_told_beside_the_paper(call, demo, finish):
    finish(demo, demo.cells["bn_ablation.a1.lbn"].runs[0], n_clean=40, n_robust=16)
    record_code(finish.folder, demo, demo.cells["bn_ablation.a1.lbn"].runs[0], CURRENT)
    code, out, _ = call("diff", "--directory", str(finish.folder), "--table", TABLE)
    assert code == 0
    assert out.startswith(
        "# Scale demo against the paper\n\n8 cells: 0 reproduced, 0 lower, 0 higher, 7 missing, 1 not comparable, 0 stale."
    )
    assert compare.RULE in out
    first, *others = lines_of(out)
    assert [first[key] for key in ("demo", "paper", "difference", "verdict")] == ["25.00", "44.41", "-19.41", "not comparable<sup>1</sup>"]
    assert {line["verdict"] for line in others} == {"missing<sup>2</sup>"}


def test_the_largest_difference_is_on_top(call, off):
    lines = lines_of(call(*off)[1])
    assert [line["difference"] for line in lines[:3]] == ["+5.00", "-2.00", "+0.00"]
    assert len(lines) == 8


@pytest.mark.parametrize(
    ("words", "differences"),
    [("lower,higher", ["+5.00", "-2.00"]), ("lower", ["-2.00"]), ("not-comparable", []), ("not comparable,higher", ["+5.00"])],
)
def test_only_some_verdicts(call, off, words, differences):
    code, out, _ = call(*off, "--only", words)
    assert code == 0
    assert out.splitlines()[2] == "8 cells: 6 reproduced, 1 lower, 1 higher, 0 missing, 0 not comparable, 0 stale.", "the summary is of all"
    assert f"({len(differences)} of 8 cells)" in out
    assert [line["difference"] for line in lines_of(out)] == differences


def test_a_verdict_that_there_is_not(call, capsys):
    with pytest.raises(SystemExit):
        call("diff", "--only", "lower,worse")
    assert "'worse' is no verdict; allowed: reproduced, lower, higher, missing, not comparable, stale" in capsys.readouterr().err


def test_several_tables_have_a_line_each_in_the_summary(call, paper, tmp_path):
    write(paper, tmp_path, paper.cells["bn_ablation.a1.lbn"], 44.41)
    out = call("diff", "--scale", "paper", "--directory", str(tmp_path))[1]
    counts = lines_of(out, "cells")
    assert [line["table"] for line in counts] == list(paper.tables)
    line = next(line for line in counts if line["table"] == TABLE)
    assert (line["cells"], line["reproduced"], line["missing"]) == ("8", "1", "7")
    assert "lower" not in line, "a verdict that no cell has is no column"


def test_without_numbers_there_is_a_hint(call, finish):
    where = ["--directory", str(finish.folder), "--table", TABLE]
    assert "demo has no numbers yet: `snakemake --cores 8 all_tables --config scale=demo` makes them" in call("diff", *where)[1]


def test_strict_is_content_when_everything_is_reproduced(call, paper, tmp_path):
    words = ["diff", "--scale", "paper", "--table", TABLE, "--strict", "--directory", str(tmp_path)]
    for cell in paper.cells_of(TABLE):
        write(paper, tmp_path, cell, cell.reported.value)
    code, out, _ = call(*words)
    assert code == 0
    assert "8 cells: 8 reproduced" in out
    write(paper, tmp_path, cell, 10.0)
    code, out, _ = call(*words)
    assert code == 1
    assert "7 reproduced, 1 lower" in out


def test_strict_asks_for_the_cells_that_we_do_not_have(call, paper, tmp_path):
    cell = paper.cells["bn_ablation.a1.lbn"]
    write(paper, tmp_path, cell, cell.reported.value)
    words = ["diff", "--scale", "paper", "--table", TABLE, "--directory", str(tmp_path)]
    code, out, _ = call(*words, "--strict", "--only", "reproduced")
    assert "1 reproduced, 0 lower, 0 higher, 7 missing" in out
    assert code == 1, "what is shown does not change what is asked"
    assert call(*words)[0] == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["diff", "demo"], "diff takes no set of results, or two; it was given 1"),
        (["diff", "demo", "nowhere"], f"'nowhere' is no set of results; allowed: a scale ({', '.join(config.names('scales'))}; with seeds"),
        (["diff", "demo", "demo:1,x"], "'1,x' is not a list of different seeds such as 1,2,3"),
        (["diff", "demo", "nowhere.parquet"], "nowhere.parquet: is not a frame of results (there is no such file)"),
        (["diff", "--table", "foo"], "no table is called 'foo'"),
        (["partial", "foo"], "no table is called 'foo'"),
        (["partial", "foo", "--write"], "no table is called 'foo'"),
    ],
)
def test_wrong_input_is_one_line(call, words, message):
    code, out, err = call(*words)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert message in err
    assert err.count("\n") == 1
