"""What others measured: read and refused by file and key, found by the Run of a cell, shown wherever the paper's number is."""

import csv
import dataclasses
import io
from pathlib import Path

import pytest
import yaml

from methods.core.errors import UserError
from workflow.suite.__main__ import main
from workflow.suite.page import tables as page_tables
from workflow.suite.planning import plan
from workflow.suite.planning.others import load_others
from workflow.suite.results import others
from workflow.suite.tables import latex, markdown, sheet

FILE = {
    "who": "Somebody",
    "where": "a book",
    "settings": "some attack",
    "comparable": "close",
    "how": "another recipe",
    "run": {"dataset": "cifar10", "arch": "rn18", "precision": "fp"},
    "entries": [{"what": "their network", "robust": 33.5, "run": {"method": "hydra", "p": 1}}],
}


@pytest.fixture
def paper():
    return plan.load("paper", data_root=Path("none"))


def test_published_numbers_belong_to_their_cells(paper):
    """At r = 0.99 on RN18 the benchmark has 42.02, 38.80 and 15.16 where the paper prints 42.15, 40.20 and 31.98."""
    for row, theirs, apart in (("flyingbird", 42.02, -0.13), ("hydra", 38.80, -1.40), ("rst", 15.16, -16.82)):
        cell = paper.cells[f"comparison_rn18_rn50.{row}.rn18-fp"]
        (other,) = [other for other in others.of_cell(paper, cell) if other.close]
        assert other.robust == theirs
        assert others.apart(cell, other) == pytest.approx(apart)
    assert others.of_cell(paper, paper.cells["comparison_rn18_rn50.rst-lbn.rn18-fp"]) == []
    assert others.of_cell(paper, paper.cells["comparison_rn18_rn50.flyingbird-plus.rn18-fp"]) == []
    assert others.of_cell(paper, paper.cells["comparison_rn18_rn50.hydra.rn18-binary"]) == []


def test_only_close_numbers_that_are_far_away_are_footnotes(paper):
    """TRADES of a wide network is four points above the paper's RN34, and no reason for doubt."""
    departing = {address for address, cell in paper.cells.items() if others.departing(paper, cell)}
    assert departing == {"comparison_rn18_rn50.rst.rn18-fp", "comparison_rn18_rn50.at.rn50-fp"}
    trades = paper.cells["complete_comparison.trades.cifar10-fp"]
    assert [round(others.apart(trades, other), 2) for other in others.of_cell(paper, trades)] == [4.01]
    assert others.footnotes(paper, trades) == []


def test_a_scale_that_trains_another_network_changes_nothing_here(paper):
    """Scale lite trains RN18 in the place of RN34; the numbers beside a cell are still those of the paper's network."""
    lite = plan.load("lite", data_root=Path("none"))
    for address in ("main_comparison.rst.cifar10-fp", "comparison_rn18_rn50.rst.rn18-fp"):
        assert others.of_cell(lite, lite.cells[address]) == others.of_cell(paper, paper.cells[address])


@pytest.fixture
def small(repository):  # noqa: F811
    """A paper that prints 30.00 for row `other` of the full-precision column."""

    def load(change=lambda values: None):
        values = yaml.safe_load(yaml.safe_dump(FILE))
        change(values)
        (repository / "workflow" / "config" / "others").mkdir(exist_ok=True)
        (repository / "workflow" / "config" / "others" / "them.yaml").write_text(yaml.safe_dump(values))
        return plan.load("demo", data_root=Path("none"), root=repository)

    return load


NOTE = "Somebody measured 33.50, 3.50 points above the paper's 30.00: their network; another recipe"


def test_footnotes_of_every_format(small, tmp_path):
    planned = small()
    assert f". {NOTE}" in markdown.table(planned, "small", tmp_path, made_by="x")
    assert f". {NOTE}" in markdown.row(planned, "small", "other", tmp_path, made_by="x")
    assert f") {NOTE}" in latex.table(planned, "small", tmp_path, made_by="x")
    line = next(line for line in csv.DictReader(io.StringIO(sheet.table(planned, "small", tmp_path))) if line["row"] == "other")
    assert line["others"] == "33.50 by Somebody: their network; some attack; close: another recipe [a book]"
    rows = page_tables.results(planned, "small", tmp_path, {})["rows"]
    cell = rows[1]["cells"][0]
    assert cell["noted"]
    assert dict(cell["lines"])["Others"] == [{"text": line["others"]}]
    assert "Others" not in dict(rows[0]["cells"][0]["lines"])


@pytest.mark.parametrize(("robust", "noted"), [(32.0, False), (28.0, False), (27.99, True)])
def test_two_points_are_allowed(small, robust, noted):
    planned = small(lambda values: values["entries"][0].update(robust=robust))
    assert bool(others.footnotes(planned, planned.cells["small.other.fp"])) == noted


def test_a_table_of_clean_accuracy_shows_their_clean_accuracy(small):
    planned = small(lambda values: values["entries"][0].update(clean=70.0))
    cell = dataclasses.replace(planned.cells["small.other.fp"], metric="clean_acc")
    assert others.lines(planned, cell)[0].startswith("70.00 by Somebody")
    assert others.lines(small(), cell) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda values: values.pop("who"), r"others/them\.yaml: missing key 'who'"),
        (lambda values: values.update(comparable="equal"), r"comparable: 'equal' is not allowed; allowed: close \(method"),
        (lambda values: values["entries"][0].update(robust=101), r"entries\[0\]\.robust: 101 is not allowed; allowed: a number in percent"),
        (lambda values: values["entries"][0].update(note="x"), r"entries\[0\]: unknown key 'note'; allowed: clean, comparable, how"),
        (lambda values: values["run"].update(architecture="rn18"), r"entries\[0\]\.run: unknown key 'architecture'; allowed: "),
        (lambda values: values["run"].update(arch="vgg16"), r"entries\[0\]\.run.*arch: 'vgg16' is not allowed"),
    ],
)
def test_wrong_files_are_named(small, change, message):
    with pytest.raises(UserError, match=message):
        small(change)


def test_shipped_files_are_sound():
    loaded = load_others()
    assert len([other for other in loaded if "Pruning" in other.who]) == 30
    assert all(other.clean > other.robust for other in loaded)


def test_the_command_lists_them_with_their_cells(capsys):
    assert main(["others", "--table", "comparison_rn18_rn50"]) == 0
    out = capsys.readouterr().out
    rst = next(line for line in out.splitlines() if "Scratch-Ticket" in line)
    assert rst.split()[-3:] == ["comparison_rn18_rn50.rst.rn18-fp", "31.98", "-16.82"]
    assert "HARP" not in out
    assert main(["others"]) == 0
    assert "HARP, r = 0.99" in capsys.readouterr().out
    assert main(["show", "comparison_rn18_rn50.rst.rn18-fp"]) == 0
    assert "  others: 15.16 by AdversarialPruningBenchmark" in capsys.readouterr().out
