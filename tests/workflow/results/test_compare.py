"""Our numbers against the paper's and against each other: verdicts, staleness, exit codes."""

import dataclasses
import shutil
from pathlib import Path

import pytest

from methods.core import paths, sealed
from methods.core.errors import UserError
from methods.core.fingerprint import file_digest
from workflow.suite.__main__ import main
from workflow.suite.planning import config, plan
from workflow.suite.planning.tables import load_tables
from workflow.suite.results import compare, result_sets, stale, stats
from workflow.suite.tables import diff_text, latex, markdown, render

N = 10000


def record(folder, planned, run, files):
    """Training and evaluation records of a Run and its ancestors, made by code that is `files`."""
    chosen = planned.evaluations[run]
    names = [paths.train_manifest(item.name) for item in planned.lineage(run)]
    names += [paths.shard(run, chosen.id, k, chosen.shards) for k in range(1, chosen.shards + 1)]
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        sealed.write(path, {"provenance": {"files": files}})


CURRENT = {"methods/pruning/masks.py": file_digest(config.ROOT / "methods" / "pruning" / "masks.py")}


@pytest.fixture
def paper_scale(repository):  # noqa: F811
    return plan.load("paper", data_root=Path("none"), root=repository)


@pytest.fixture
def measured(paper_scale, finish):
    """measured(row.column, percent, files) -> the difference of that cell."""

    def write(address, percent, files=CURRENT):
        cell = paper_scale.cells[f"small.{address}"]
        finish(paper_scale, cell.runs[0], n_clean=N, n_robust=round(percent * N / 100), n=N)
        record(finish.folder, paper_scale, cell.runs[0], files)
        return next(item for item in compare.compare(paper_scale, finish.folder) if item.address == cell.address)

    return write


@pytest.mark.parametrize(
    ("percent", "verdict"), [(50.0, "reproduced"), (50.9, "reproduced"), (49.1, "reproduced"), (52.0, "higher"), (48.0, "lower")]
)
def test_the_papers_number_in_or_out_of_our_interval(measured, percent, verdict):
    item = measured("ref.fp", percent)
    assert (item.verdict, item.reference, item.n, item.seeds) == (verdict, 50.0, N, 1)
    assert item.difference == pytest.approx(percent - 50)
    assert item.interval[0] < percent < item.interval[1]


def test_a_printed_number_may_be_rounded():
    assert compare.against(30.0, (29.5, 30.5), 30.504) == "reproduced"
    assert compare.against(30.0, (29.5, 30.5), 30.51) == "lower"


def test_missing_and_without_a_number_in_the_paper(paper_scale, measured, finish):
    item = measured("other.binary", 20.0)
    assert (item.verdict, item.why) == ("not comparable", "the paper prints no number")
    found = {item.address.removeprefix("small."): item for item in compare.compare(paper_scale, finish.folder)}
    assert (found["ref.fp"].verdict, found["ref.fp"].why) == ("missing", "not run yet")
    assert found["later.fp"].verdict == "missing" and "not implemented yet" in found["later.fp"].why
    assert "ours.fp" not in found, "a dash on both sides is no cell to compare"
    assert compare.counts(found.values()) == {
        **dict.fromkeys(compare.VERDICTS, 0),
        "missing": 6,
        "not comparable": 1,
    }


def test_a_reduced_scale_never_reproduces(repository, finish):  # noqa: F811
    demo = plan.load("demo", data_root=Path("none"), root=repository)
    run = demo.cells["small.ref.fp"].runs[0]
    finish(demo, run, n_clean=64, n_robust=32)
    record(finish.folder, demo, run, CURRENT)
    item = next(item for item in compare.compare(demo, finish.folder) if item.address == "small.ref.fp")
    assert item.difference == 0 and (item.verdict, item.why) == ("not comparable", "scale demo is a reduced one")


def test_a_stale_number_of_a_reduced_scale_is_called_stale(repository, finish):  # noqa: F811
    demo = plan.load("demo", data_root=Path("none"), root=repository)
    run = demo.cells["small.ref.fp"].runs[0]
    finish(demo, run, n_clean=64, n_robust=32)
    record(finish.folder, demo, run, {"methods/attacks/pgd.py": "0" * 16})
    item = next(item for item in compare.compare(demo, finish.folder) if item.address == "small.ref.fp")
    assert (item.verdict, item.why) == ("stale", "methods/attacks/pgd.py has changed")


def test_stale_numbers_are_called_so(measured):
    item = measured("ref.fp", 50.0, {**CURRENT, "methods/attacks/pgd.py": "0" * 16, "methods/gone.py": "1" * 16})
    assert (item.verdict, item.why) == ("stale", "methods/attacks/pgd.py has changed; methods/gone.py has changed")
    assert measured("ref.fp", 50.0, None).why == "train.json does not record the code that made it; " + "; ".join(
        f"{k}-of-4.json does not record the code that made it" for k in range(1, 5)
    )


def test_a_table_with_stale_numbers_says_so(paper_scale, measured, finish):
    def texts():
        yield markdown.table(paper_scale, "small", finish.folder, made_by="")
        yield latex.table(paper_scale, "small", finish.folder, made_by="")
        yield markdown.row(paper_scale, "small", "ref", finish.folder, made_by="")

    measured("other.binary", 20.0)
    measured("ref.fp", 50.0)
    assert not any("STALE" in text for text in texts())
    measured("ref.fp", 50.0, {"methods/gone.py": "1" * 16})
    for text, runs in zip(texts(), (2, 2, 1), strict=True):
        assert f"STALE: the code behind 1 of {runs} runs has changed since" in text


def test_a_stale_parent_makes_its_child_stale(paper_scale, measured, finish):
    run = paper_scale.cells["small.ref.fp"].runs[0]
    assert measured("ref.fp", 50.0).verdict == "reproduced"
    parent = paper_scale.lineage(run)[1].name
    sealed.write(finish.folder / paths.train_manifest(parent), {"provenance": {"files": {"methods/pruning/masks.py": "0"}}})
    assert stale.reasons(paper_scale, run, finish.folder) == ["methods/pruning/masks.py has changed"]
    (finish.folder / paths.train_manifest(parent)).unlink()
    assert stale.reasons(paper_scale, run, finish.folder) == ["train.json is gone, so the code behind it is unknown"]
    (finish.folder / paths.train_manifest(parent)).write_text("{")
    with pytest.raises(UserError, match="train.json: is damaged"):
        stale.reasons(paper_scale, run, finish.folder)


def test_several_seeds_widen_the_interval(repository, finish):  # noqa: F811
    where = repository / "workflow" / "config"
    scale = dataclasses.replace(config.load_scale("paper", where), seeds=(1, 2, 3))
    built = plan.build(load_tables(where), plan.recipes.load_all(repository), scale, data_root=Path("none"))
    for run, hits in zip(built.cells["small.ref.fp"].runs, (4600, 4700, 4800), strict=True):
        finish(built, run, n_clean=N, n_robust=hits, n=N)
        record(finish.folder, built, run, CURRENT)
    item = next(item for item in compare.compare(built, finish.folder) if item.address == "small.ref.fp")
    # Mean 47, sd 1, t(2) = 4.3027, sqrt(4/3): one more training is expected within 4.97 points.
    assert item.interval == pytest.approx((47 - 4.968, 47 + 4.968), abs=2e-3)
    assert (item.verdict, item.seeds) == ("reproduced", 3)
    assert stats.prediction([0.5]) is None


def test_difference_of_two_proportions():
    # Newcombe 1998, table II, first column: 56/70 against 48/80, method 10.
    assert stats.newcombe((48, 80), (56, 70)) == pytest.approx((0.0524, 0.3339), abs=5e-5)


def test_csv_has_a_line_per_cell(paper_scale, measured, finish):
    measured("ref.fp", 48.0)
    lines = diff_text.sheet(compare.compare(paper_scale, finish.folder)).splitlines()
    assert lines[0] == ",".join(diff_text.FIELDS) and len(lines) == 7
    assert lines[1].startswith("small,ref,fp,48.00,47.02,48.98,50.00,-2.00,lower,1,10000,")


@pytest.fixture
def call(tmp_path, capsys):
    def run(*words):
        code = main([*words, "--data-root", str(tmp_path)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture(scope="module")
def demo():
    return plan.load("demo", data_root=Path("none"))


def test_diff_command_and_its_exit_code(call, demo, finish):
    where = ["--directory", str(finish.folder), "--table", "bn_ablation"]
    finish(demo, demo.cells["bn_ablation.a1.lbn"].runs[0], n_clean=40, n_robust=16)
    record(finish.folder, demo, demo.cells["bn_ablation.a1.lbn"].runs[0], CURRENT)
    code, out, _ = call("diff", *where)
    assert code == 0
    assert "8 cells: 0 reproduced, 0 lower, 0 higher, 7 missing, 1 not comparable, 0 stale." in out and compare.RULE in out
    (line,) = (line for line in out.splitlines() if line.startswith("| a1 ") and "25.00" in line)
    assert [cell.strip() for cell in line.split("|")[5:8]] == ["44.41", "-19.41", "not comparable<sup>2</sup>"]
    assert call("diff", "--strict", *where)[0] == 1
    assert call("diff", "--table", "foo")[0] == 2


def test_strict_is_content_when_everything_is_reproduced(call, tmp_path):
    planned = plan.load("paper", data_root=tmp_path)
    folder = tmp_path / "work"
    for cell in planned.cells_of("bn_ablation"):
        for run in cell.runs:
            path = folder / paths.evaluation(run, planned.evaluations[run].id)
            path.parent.mkdir(parents=True)
            hits = round(cell.reported.value * N / 100)
            sealed.write(path, {"clean_acc": 0.9, "n": N, "n_clean": 9000, "robust_acc": hits / N, "n_robust": hits})
            record(folder, planned, run, CURRENT)
    words = ["diff", "--scale", "paper", "--table", "bn_ablation", "--strict", "--directory", str(folder)]
    code, out, _ = call(*words)
    assert code == 0 and "8 cells: 8 reproduced" in out
    sealed.write(path, {"clean_acc": 0.9, "n": N, "n_clean": 9000, "robust_acc": 0.1, "n_robust": 1000})
    code, out, _ = call(*words)
    assert code == 1 and "7 reproduced, 1 lower" in out


def test_strict_asks_for_the_cells_that_we_do_not_have(call, tmp_path):
    planned = plan.load("paper", data_root=tmp_path)
    folder = tmp_path / "work"
    cell = planned.cells["bn_ablation.a1.lbn"]
    path = folder / paths.evaluation(cell.runs[0], planned.evaluations[cell.runs[0]].id)
    path.parent.mkdir(parents=True)
    hits = round(cell.reported.value * N / 100)
    sealed.write(path, {"clean_acc": 0.9, "n": N, "n_clean": 9000, "robust_acc": hits / N, "n_robust": hits})
    record(folder, planned, cell.runs[0], CURRENT)
    words = ["diff", "--scale", "paper", "--table", "bn_ablation", "--directory", str(folder)]
    code, out, _ = call(*words, "--strict")
    assert "1 reproduced, 0 lower, 0 higher, 7 missing" in out
    assert code == 1
    assert call(*words)[0] == 0


@pytest.fixture
def two(demo, finish, tmp_path):
    """Two folders with results that differ in one cell, and the files of a frame of the second."""
    for address, hits in {"a1.lbn": 32, "a1.no-lbn": 10, "a01.lbn": 20}.items():
        finish(demo, demo.cells[f"bn_ablation.{address}"].runs[0], n_clean=60, n_robust=hits)
    second = tmp_path / "second"
    shutil.copytree(finish.folder, second)
    finish(demo, demo.cells["bn_ablation.a1.lbn"].runs[0], n_clean=60, n_robust=2)
    run = demo.cells["bn_ablation.a01.lbn"].runs[0]
    (second / paths.evaluation(run, demo.evaluations[run].id)).unlink()
    return finish.folder, second, *render.write_frame(demo, second)


@pytest.mark.parametrize("kind", ["folder", "results", "parquet", "csv"])
def test_two_sets_of_results(call, two, kind):
    first, second, parquet, csv = two
    other = {"folder": second, "results": second / "results", "parquet": parquet, "csv": csv}[kind]
    code, out, _ = call("diff", str(first), str(other), "--table", "bn_ablation")
    assert code == 0
    verdict = {
        tuple(cell.strip() for cell in line.split("|")[1:3]): line.split("|")[7].strip()
        for line in out.splitlines()
        if line.startswith("| a")
    }
    assert verdict == {("a01", "lbn"): "missing<sup>1</sup>", ("a1", "no-lbn"): "reproduced", ("a1", "lbn"): "higher"}


def test_strict_between_two_sets(call, two):
    first, second, *_ = map(str, two)
    assert call("diff", first, first, "--table", "bn_ablation", "--strict")[0] == 0
    assert call("diff", first, second, "--table", "bn_ablation", "--strict")[0] == 1


def test_two_scales_are_not_comparable(call, two, demo, tmp_path):
    first, *_ = two
    code, out, _ = call("diff", "demo", "lite", "--directory", str(first), "--table", "bn_ablation")
    assert code == 0 and "3 missing" in out
    sets = [result_sets.load(name, demo, folder=first, data_root=tmp_path) for name in ("demo", "demo")]
    (one, *_) = result_sets.diff(sets[0], dataclasses.replace(sets[1], scale="lite"), "bn_ablation")
    assert (one.verdict, one.why) == ("not comparable", "scales demo and lite")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["diff", "demo"], "diff takes no set of results, or two; it was given 1"),
        (
            ["diff", "demo", "nowhere"],
            f"'nowhere' is no set of results; allowed: a scale ({', '.join(config.names('scales'))}), a .parquet or .csv frame",
        ),
        (["diff", "demo", "nowhere.parquet"], "nowhere.parquet: is not a frame of results (there is no such file)"),
        (["partial", "foo"], "no table is called 'foo'"),
        (["partial", "foo", "--write"], "no table is called 'foo'"),
    ],
)
def test_wrong_input_is_one_line(call, words, message):
    code, out, err = call(*words)
    assert code == 2 and out == "" and err.startswith("error: ") and message in err and err.count("\n") == 1


def test_a_frame_of_other_runs_is_refused(call, two, tmp_path):
    import pandas as pd

    frame = pd.read_parquet(two[2])
    strange = tmp_path / "strange.parquet"
    frame.assign(run="at.000000000000").to_parquet(strange)
    assert "none of its 1 Runs is planned at any scale" in call("diff", str(two[2]), str(strange))[2]
    frame.replace({"run": {frame["run"].iloc[-1]: "at.000000000000"}}).to_parquet(strange)
    assert "1 lines belong to no planned Run" in call("diff", str(two[2]), str(strange))[1]


def test_partial_prints_or_writes(call, demo, finish):
    finish(demo, demo.cells["bn_ablation.a1.lbn"].runs[0], n_clean=32, n_robust=16)
    where = ["--directory", str(finish.folder)]
    code, out, _ = call("partial", "bn_ablation", *where)
    assert code == 0 and "**25.00** [16.01, 36.82] / 44.41" in out and "· / 31.04" in out
    assert not (finish.folder / "reports").exists()
    code, out, _ = call("partial", "bn_ablation", "--write", *where)
    written = [finish.folder / paths.partial("demo", "bn_ablation", kind) for kind in paths.FORMATS]
    assert code == 0 and out.split() == list(map(str, written)) and all(path.is_file() for path in written)


def test_claims_command(call, finish):
    code, out, _ = call("claims", "--directory", str(finish.folder))
    assert code == 0 and out.count("\n| C") == 100 and "The paper's own numbers: 52 TRUE, 36 FALSE" in out
