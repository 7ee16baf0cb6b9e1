"""Our numbers against the paper's: verdicts, intervals, staleness."""

import dataclasses
from pathlib import Path

import pytest

from methods.core import paths, sealed
from methods.core.errors import UserError
from tests.workflow.results.recorded import CURRENT, N, record_code
from workflow.suite.planning import config, plan
from workflow.suite.planning.tables import load_tables
from workflow.suite.results import compare, stale, stats
from workflow.suite.tables import diff_text, latex, markdown


@pytest.fixture
def paper_scale(repository):  # noqa: F811
    return plan.load("paper", data_root=Path("none"), root=repository)


@pytest.fixture
def measured(paper_scale, finish):
    """measured(row.column, percent, files) -> the difference of that cell."""

    def write(address, percent, files=CURRENT):
        cell = paper_scale.cells[f"small.{address}"]
        finish(paper_scale, cell.runs[0], n_clean=N, n_robust=round(percent * N / 100), n=N)
        record_code(finish.folder, paper_scale, cell.runs[0], files)
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
    differences = {item.address.removeprefix("small."): item for item in compare.compare(paper_scale, finish.folder)}
    assert (differences["ref.fp"].verdict, differences["ref.fp"].why) == ("missing", "not run yet")
    assert differences["later.fp"].verdict == "missing"
    assert "not implemented yet" in differences["later.fp"].why
    assert "ours.fp" not in differences, "a dash on both sides is no cell to compare"
    assert compare.counts(differences.values()) == {
        **dict.fromkeys(compare.VERDICTS, 0),
        "missing": 6,
        "not comparable": 1,
    }


def test_a_reduced_scale_never_reproduces(repository, finish):  # noqa: F811
    demo = plan.load("demo", data_root=Path("none"), root=repository)
    run = demo.cells["small.ref.fp"].runs[0]
    finish(demo, run, n_clean=64, n_robust=32)
    record_code(finish.folder, demo, run, CURRENT)
    item = next(item for item in compare.compare(demo, finish.folder) if item.address == "small.ref.fp")
    assert item.difference == 0
    assert (item.verdict, item.why) == ("not comparable", "scale demo is a reduced one")


def test_a_stale_number_of_a_reduced_scale_is_called_stale(repository, finish):  # noqa: F811
    demo = plan.load("demo", data_root=Path("none"), root=repository)
    run = demo.cells["small.ref.fp"].runs[0]
    finish(demo, run, n_clean=64, n_robust=32)
    record_code(finish.folder, demo, run, {"methods/attacks/pgd.py": "0" * 16})
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
        record_code(finish.folder, built, run, CURRENT)
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
    assert lines[0] == ",".join(diff_text.FIELDS)
    assert len(lines) == 7
    assert lines[1].startswith("small,ref,fp,48.00,47.02,48.98,50.00,-2.00,lower,1,10000,")
