"""Rows against each other on the command line, ties in rendered tables, and two sets of results over the same images."""

import csv
import io
from pathlib import Path

import pytest

from methods.core import paths, sealed
from tests.workflow.results.outcomes import N, right, write
from workflow.suite.__main__ import main
from workflow.suite.page import tables as page_tables
from workflow.suite.planning import plan
from workflow.suite.results import compare, versus
from workflow.suite.results.measure import measure, measure_table
from workflow.suite.tables import latex, markdown, sheet


@pytest.fixture
def demo():
    return plan.load("demo", data_root=Path("none"))


@pytest.fixture
def folder(demo, tmp_path):
    """Column lbn of bn_ablation: the best, one that differs in few images, one that differs in many, one that is far below."""
    for row, spans in {
        "a0001": [(0, 500)],
        "a001": [(0, 495), (600, 602)],  # loses five, gains two: p = 0.45
        "a01": [(100, 480), (700, 800)],  # loses 120, gains 100: p = 0.2
        "a1": [(0, 400)],
    }.items():
        write(demo, tmp_path, f"bn_ablation.{row}.lbn", right(*spans))
    return tmp_path


@pytest.fixture
def call(folder, capsys):
    def run(*words):
        code = main([*words, "--directory", str(folder)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def test_two_rows(call):
    code, out, _ = call("versus", "bn_ablation.a0001", "bn_ablation.a001", "--column", "lbn")
    assert code == 0
    (line,) = (line.split() for line in out.splitlines() if line.strip().startswith("lbn "))
    assert line[:4] == ["lbn", "50.00", "49.70", "+0.30"]
    assert line[6:10] == ["495", "5", "2", "498"]
    assert line[10:13] == ["0.453", "0.453", "undecided"]  # 2 * P(X <= 2), X ~ B(7, 1/2) = 58 / 128
    assert "NOT comparable" in out


def test_two_cells_of_different_columns(call, demo, folder):
    write(demo, folder, "bn_ablation.a1.no-lbn", right((0, 493), (600, 602)))
    code, out, _ = call("versus", "bn_ablation.a0001.lbn", "bn_ablation.a1.no-lbn")
    assert code == 0
    assert out.startswith("bn_ablation.a0001.lbn against bn_ablation.a1.no-lbn, scale demo\n")
    (line,) = (line.split() for line in out.splitlines() if line.strip().startswith("50.00 "))
    assert line[:3] == ["50.00", "49.50", "+0.50"]
    assert line[5:9] == ["493", "7", "2", "498"]


def test_a_whole_table_against_its_best(call):
    code, out, _ = call("versus", "bn_ablation")
    assert code == 0
    assert "lbn: best is a0001 with 50.00" in out
    verdicts = {
        line.split()[0]: line.split()[-2] for line in out.splitlines() if line.strip().startswith("a0") or line.strip().startswith("a1 ")
    }
    assert verdicts == {"a001": "undecided", "a01": "undecided", "a1": "lower"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["bn_ablation.a1"],
            "versus takes two rows (TABLE.ROW TABLE.ROW), two cells (TABLE.ROW.COLUMN) or one table; it was given 'bn_ablation.a1'",
        ),
        (["bn_ablation.a1", "bn_ablation"], "'bn_ablation' is no row; a row is given as TABLE.ROW"),
        (["bn_ablation.a1", "bn_ablation.a9"], "no row is called 'a9'; allowed: a0001"),
        (
            ["bn_ablation.a1", "bn_ablation.a01.lbn"],
            "'bn_ablation.a01.lbn' is no row; a row is given as TABLE.ROW, a cell as TABLE.ROW.COLUMN",
        ),
        (["bn_ablation.a1.lbn", "bn_ablation.a1.x"], "'x' is no column of bn_ablation; allowed: no-lbn, lbn"),
        (["bn_ablation.a1.lbn", "bn_ablation.a1.no-lbn"], "bn_ablation.a1.no-lbn is not measured at scale 'demo'"),
        (["bn_ablation.a1.lbn", "bn_ablation.a01.lbn", "--column", "lbn"], "two cells name their columns themselves"),
        (["bn_ablation.a1", "sp_ratio.p00"], "have no column in which both are measured"),
        (
            ["bn_ablation.a1", "bn_ablation.a01", "--column", "x"],
            "'x' is no column of both bn_ablation.a1 and bn_ablation.a01; allowed: no-lbn",
        ),
        (["bn_ablation", "--column", "no-lbn"], "'no-lbn' is no column of bn_ablation with two measured rows; allowed: lbn"),
        (["sp_ratio"], "table 'sp_ratio' has no column with two measured rows at scale 'demo'"),
        (["nothing"], "no table is called 'nothing'"),
    ],
)
def test_wrong_input_is_one_line(call, words, message):
    code, out, err = call("versus", *words)
    assert code == 2
    assert out == ""
    assert message in err
    assert err.count("\n") == 1


def test_ties_are_marked_in_every_format(demo, folder):
    shape, measured = demo.tables["bn_ablation"], measure_table(demo, "bn_ablation", folder)
    assert versus.ties(shape, measured) == {("a001", "lbn"), ("a01", "lbn")}
    text = markdown.table(demo, "bn_ablation", folder, made_by="")
    assert "49.70≈ [" in text
    assert "**50.00** [" in text
    assert "40.00 [" in text
    assert "`≈`: not significantly below the best of its column" in text
    tex = latex.table(demo, "bn_ablation", folder, made_by="")
    assert r"49.70 {$^{\approx}$} & 44.88" in tex
    lines = {line["row"]: line for line in csv.DictReader(io.StringIO(sheet.table(demo, "bn_ablation", folder))) if line["column"] == "lbn"}
    assert {row: line["tie"] for row, line in lines.items()} == {"a0001": "", "a001": "True", "a01": "True", "a1": ""}
    rows = page_tables.results(demo, "bn_ablation", folder, {})["rows"]
    assert [row["cells"][1]["tied"] for row in rows] == [False, True, True, False]


def test_without_outcomes_nothing_is_called_a_tie(demo, tmp_path):
    for row, hits in {"a0001": 500, "a001": 499}.items():
        run = demo.cells[f"bn_ablation.{row}.lbn"].runs[0]
        path = tmp_path / paths.evaluation(run, demo.evaluations[run].id)
        path.parent.mkdir(parents=True)
        sealed.write(path, {"n": N, "clean_acc": 0.9, "n_clean": 900, "robust_acc": hits / N, "n_robust": hits, "data": "x"})
    assert versus.ties(demo.tables["bn_ablation"], measure_table(demo, "bn_ablation", tmp_path)) == set()


def test_two_sets_are_compared_image_by_image(demo, tmp_path):
    # 20 of 1000 images lost and none gained: clear image by image, invisible to intervals of 50 and 48 %.
    cell = demo.cells["bn_ablation.a1.lbn"]
    sides = []
    for name, spans in (("first", [(0, 500)]), ("second", [(0, 480)])):
        write(demo, tmp_path / name, cell.address, right(*spans))
        sides.append(measure(demo, cell, tmp_path / name))
    assert compare.between(*sides, alike=True, names=("first", "second")).verdict == "lower"
    assert compare.between(*sides[::-1], alike=True, names=("second", "first")).verdict == "higher"
    write(demo, tmp_path / "second", cell.address, right((0, 480)), data="other images")
    other = measure(demo, cell, tmp_path / "second")
    assert compare.between(sides[0], other, alike=True, names=("first", "other")).verdict == "reproduced"


def test_seeds_and_images_share_the_spread(tmp_path, capsys):
    planned = plan.load("demo", data_root=tmp_path, seeds=(1, 2))
    write(planned, tmp_path, "bn_ablation.a1.lbn", right((0, 500)), right((0, 400)))
    assert main(["show", "bn_ablation.a1.lbn", "--seeds", "1,2", "--directory", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "seeds: 2, mean 45.00, sd 7.07" in out
    # Mean squares: seeds 5, images 445 / 999, rest 45 / 999.
    assert "spread: other trainings would move the mean by 5.00 points, other test images by 1.49" in out
