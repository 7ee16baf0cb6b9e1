"""The results that the README opens with: as measured, in their place, and up to date."""

import pytest

from methods.core.errors import UserError
from tests.workflow import finished
from tests.workflow.paper import committed
from workflow.suite.paper import headline
from workflow.suite.planning import plan
from workflow.suite.planning.config import ROOT


@pytest.fixture(scope="module")
def lite():
    return plan.load("lite", data_root=ROOT / "none")


def evaluate(lite, folder, address, hits, seed=0):
    finished.evaluate(lite, lite.cells[address].runs[seed], folder, n=500, hits=hits)


def test_the_readme_has_the_committed_results(lite, tmp_path):
    remedy = "run `python -m workflow.suite findings --scale lite` and commit README.md"
    assert headline.block(lite, committed.copy_to(tmp_path)) in (ROOT / headline.README).read_text(), remedy


def test_nothing_measured(lite, tmp_path):
    assert headline.block(lite, tmp_path).endswith("Nothing is measured yet.")


def test_ours_with_its_interval_beside_the_papers(lite, tmp_path):
    """105 of 500: Wilson's interval is 17.7 to 24.8 %. With 115 more in another seed: 220 of 1000."""
    evaluate(lite, tmp_path, "main_comparison.ours.cifar10-binary", 105)
    text = headline.block(lite, tmp_path)
    assert "NOT comparable with the paper's numbers" in text
    assert "| Ours RN34-LBN p = 0.1 | -                | 21.0 [17.7, 24.8] / 45.06 |" in text
    assert "AT RN34 Not Pruned" not in text
    assert "cells wait for Runs that are not trained yet" in text
    assert "![" not in text
    evaluate(lite, tmp_path, "main_comparison.ours.cifar10-binary", 115, seed=1)
    assert "22.0 [19.5, 24.7] (n = 2) / 45.06" in headline.block(lite, tmp_path)


def test_a_row_with_one_of_two_cells(lite, tmp_path):
    evaluate(lite, tmp_path, "main_comparison.at.cifar10-binary", 50)
    assert "| AT RN34 Not Pruned | · / 43.26        | 10.0 [7.7, 12.9] / 40.34 |" in headline.block(lite, tmp_path)


def test_the_map_comes_with_its_first_cell(lite, tmp_path):
    evaluate(lite, tmp_path, "main_comparison.ours.cifar10-binary", 105)
    evaluate(lite, tmp_path, "sp_ratio.p01.r99", 100)
    text = headline.block(lite, tmp_path)
    assert "](reports/lite/ratio_map.png)" in text
    assert "1 of 49 cells are measured" in text


def test_only_the_place_between_the_marks_is_written(lite, tmp_path):
    path = tmp_path / headline.README
    path.write_text(f"before\n{headline.BEGIN}\nold\n{headline.END}\nafter\n")
    headline.write(lite, tmp_path)
    text = path.read_text()
    assert text.startswith(f"before\n{headline.BEGIN}\n**Scale lite")
    assert text.endswith(f"{headline.END}\nafter\n")
    assert "old" not in text


@pytest.mark.parametrize("text", ["", headline.BEGIN, f"{headline.BEGIN}{headline.END}{headline.END}"])
def test_marks_that_are_missing_or_doubled(lite, tmp_path, text):
    (tmp_path / headline.README).write_text(text)
    with pytest.raises(
        UserError, match="README.md: the marks '<!-- results -->' and '<!-- end of results -->' do not stand there once each"
    ):
        headline.write(lite, tmp_path)
