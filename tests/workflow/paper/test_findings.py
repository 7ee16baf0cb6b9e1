"""The page of findings: what it says, what it leaves to a person, and that the committed one is up to date."""

import pytest

from methods.core.errors import UserError
from tests.workflow import finished
from tests.workflow.paper import committed
from workflow.suite.__main__ import main
from workflow.suite.paper import findings
from workflow.suite.planning import plan
from workflow.suite.planning.config import ROOT


@pytest.fixture(scope="module")
def lite():
    return plan.load("lite", data_root=ROOT / "none")


def line(text, claim):
    """The cells of a claim's line."""
    [row] = [each for each in text.splitlines() if f"; {claim}) " in each]
    return [cell.strip() for cell in row.strip("|").split(" | ")]


def test_the_committed_page_is_written_from_the_committed_results(lite, tmp_path):
    remedy = "run `python -m workflow.suite findings --scale lite` and commit docs/findings.md"
    assert (ROOT / findings.PAGE).read_text() == findings.page(lite, committed.copy_to(tmp_path)), remedy


def test_nothing_measured_is_nothing_found(lite, tmp_path):
    text = findings.page(lite, tmp_path)
    assert line(text, "C01")[2:] == ["**not measured**", "49 of 49 cells are not measured yet"]
    assert "holds," not in text.split("What the verdicts mean")[0]
    assert "What was learnt\n" not in text


def measure(lite, folder, hits):
    """Measure cells, with so many of 500 images withstanding the attack."""
    for address, count in hits.items():
        finished.evaluate(lite, lite.cells[address].runs[0], folder, n=500, hits=count)


def test_orderings_are_decided_where_all_cells_are_there(lite, tmp_path):
    """C11: for every a, LBN is above no LBN."""
    rows = [row.id for row in lite.table("bn_ablation").rows]
    measure(lite, tmp_path, {f"bn_ablation.{row}.{column}": hits for row in rows for column, hits in (("no-lbn", 50), ("lbn", 200))})
    text = findings.page(lite, tmp_path)
    assert line(text, "C11")[1:3] == ["TRUE", "**holds**"]
    assert "4 of 4 comparisons significant" in line(text, "C11")[3]
    assert "No number here reproduces one of the paper's" in text


def test_a_part_is_called_a_part(lite, tmp_path):
    """C01: the best cell of the grid is r = 0.99, p = 0.1; of four cells it is."""
    measure(lite, tmp_path, {"sp_ratio.p01.r99": 200, "sp_ratio.p10.r99": 60, "sp_ratio.p01.r5": 20, "sp_ratio.p10.r5": 90})
    verdict, numbers = line(findings.page(lite, tmp_path), "C01")[2:]
    assert verdict == "**measured part holds**"
    assert "45 of 49 cells are not measured yet" in numbers


def test_places_without_numbers_are_no_part(lite, tmp_path):
    """C25: ahead of the compressed binary rows on each data set; on one of three it is."""
    column = [cell for cell in lite.cells_of("main_comparison") if cell.column == "cifar10-binary" and cell.runs]
    measure(lite, tmp_path, {cell.address: 200 if cell.row == "ours" else 50 for cell in column})
    verdict, numbers = line(findings.page(lite, tmp_path), "C25")[2:]
    assert verdict == "**measured part holds**"
    assert numbers.startswith("CIFAR10 40.00 vs 10.00")
    assert numbers.endswith("(CIFAR100: 2 of 2 cells are not measured yet)")


def test_sizes_of_differences_are_not_testable(lite, tmp_path):
    run = lite.cells["main_comparison.ours.cifar10-binary"].runs[0]
    finished.train(lite, run, tmp_path)
    assert line(findings.page(lite, tmp_path), "C73")[2] == "**not testable here**"


def test_words_of_a_person_are_quoted_and_left_alone(lite, tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / findings.TEXT).write_text("LBN helps.\n")
    findings.write(lite, tmp_path)
    assert "## What was learnt\n\nLBN helps.\n\n## Pruning rates" in (tmp_path / findings.PAGE).read_text()
    assert (tmp_path / findings.TEXT).read_text() == "LBN helps.\n"


def test_a_scale_at_chance_has_no_findings(tmp_path, capsys):
    with pytest.raises(UserError, match="findings need a scale whose orderings mean something, such as lite"):
        findings.page(plan.load("demo", data_root=ROOT / "none"), tmp_path)
    assert main(["findings", "--scale", "demo", "--directory", str(tmp_path)]) == 2
    assert "such as lite" in capsys.readouterr().err
