"""Rendering: our number beside the paper's, in the paper's order, and a reason wherever there is none."""

import csv
import dataclasses
import io
import re
from pathlib import Path

import pytest

from methods.core import files, sealed
from methods.core.errors import UserError
from workflow.suite.planning import config, plan
from workflow.suite.planning.tables import load_tables
from workflow.suite.results import measure
from workflow.suite.tables import inert, latex, markdown, sheet

GOLDEN = """\
| Method    | CIFAR10 FP                             | CIFAR10 Binary                      |
|:----------|:---------------------------------------|:------------------------------------|
| Reference | 50.00 [38.10, 61.90] / 50.00           | · / 40.00                           |
| ┄┄        | ┄┄                                     | ┄┄                                  |
| Other     | <u>25.00</u> [16.01, 36.82] / <u>30.00</u> | 12.50 [6.47, 22.77] / -         |
| Ours      | -<sup>1</sup>                          | **37.50** [26.67, 49.75] / **45.06**<sup>2</sup> |
| Later     | n.a. / 10.00<sup>3</sup>               | n.a. / 11.00<sup>3</sup>            |
"""


@pytest.fixture
def small(repository):  # noqa: F811
    return plan.load("demo", data_root=Path("none"), root=repository)


@pytest.fixture
def folder(small, finish):
    for address, hits in {"ref.fp": 32, "other.fp": 16, "other.binary": 8, "ours.binary": 24}.items():
        finish(small, small.cells[f"small.{address}"].runs[0], n_clean=40, n_robust=hits)
    return finish.folder


def squeeze(text):
    """Table lines without the padding of cells."""
    return [re.sub(r"\s*\|\s*", "|", line) for line in text.splitlines() if line.startswith("|") and "--" not in line]


def test_markdown_table(small, folder):
    text = markdown.table(small, "small", folder, made_by="Made by a test.")
    assert squeeze(text) == squeeze(GOLDEN)
    assert "Scale demo, NOT comparable with the paper's numbers: " in text
    assert "Robust accuracy in % (reduced AutoAttack), n = 64 test images, seed 1234." in text
    assert "Data: Some images." in text
    notes = ["1. not applicable: binary only", "2. a remark", "3. not available: method 'trades' is not implemented yet"]
    assert all(note in text for note in notes)


def test_a_comparable_scale_is_called_so(repository, finish):  # noqa: F811
    paper = plan.load("paper", data_root=Path("none"), root=repository)
    text = markdown.table(paper, "small", finish.folder, made_by="")
    assert "Scale paper, can be compared with the paper's numbers" in text
    assert "standard AutoAttack), nothing measured yet" in text
    assert "CIFAR-10, full (planned)" in text


def test_several_seeds_show_mean_and_spread(repository, finish):  # noqa: F811
    where = repository / "workflow" / "config"
    scale = dataclasses.replace(config.load_scale("demo", where), seeds=(1, 2, 3))
    built = plan.build(load_tables(where), plan.recipes.load_all(repository), scale, data_root=Path("none"))
    runs = built.cells["small.ours.binary"].runs
    for run, hits in zip(runs[:2], (16, 32), strict=True):
        finish(built, run, n_clean=40, n_robust=hits)
    item = measure.measure(built, built.cells["small.ours.binary"], finish.folder)
    assert (item.status, item.value, item.n) == ("partial", 0.375, 64)
    text = markdown.table(built, "small", finish.folder, made_by="")
    assert "**37.50** ± 17.68 / **45.06**" in text
    assert "2 of 3 seeds are finished" in text
    finish(built, runs[2], n_clean=40, n_robust=24)
    assert measure.measure(built, built.cells["small.ours.binary"], finish.folder).status == "done"


def test_clean_accuracy_is_read_from_the_robust_evaluation(small, folder):
    cell = dataclasses.replace(small.cells["small.ref.fp"], metric="clean_acc")
    assert measure.measure(small, cell, folder).value == 40 / 64


def test_row(small, folder):
    text = markdown.row(small, "small", "ours", folder, made_by="x")
    run = small.cells["small.ours.binary"].runs[0]
    assert text.startswith("# A table: Ours\n")
    assert f"|CIFAR10 Binary|37.50 [26.67, 49.75]<sup>2</sup>|**45.06**|64|done|`{run}`|" in squeeze(text)
    with pytest.raises(UserError, match="no row is called 'nobody'; allowed: ref, other, ours, later"):
        markdown.row(small, "small", "nobody", folder, made_by="x")


def test_csv_has_a_line_per_cell_in_order(small, folder):
    lines = list(csv.DictReader(io.StringIO(sheet.table(small, "small", folder))))
    assert [(line["row"], line["column"]) for line in lines] == [(cell.row, cell.column) for cell in small.cells.values()]
    ours = lines[5]
    assert (ours["ours"], ours["low"], ours["high"], ours["n"], ours["mark"]) == ("37.50", "26.67", "49.75", "64", "bold")
    assert (ours["paper"], ours["paper_mark"], ours["comparable"], ours["status"]) == ("45.06", "bold", "False", "done")
    assert [line["status"] for line in lines] == ["done", "not run", "done", "done", "not applicable", "done"] + ["not available"] * 2
    assert all(line["status"] in measure.STATUSES for line in lines)


def test_latex_is_balanced_and_escaped(small, folder):
    text = latex.table(small, "small", folder, made_by="100 % & more")
    assert r"Other & 25.00 {\llap{\underline{\phantom{25.00}}}} & 30.00 {\llap{\underline{\phantom{30.00}}}} & 12.50 & {--} \\" in text
    assert r"\bfseries 37.50 {\textsuperscript{2}} & \bfseries 45.06 \\" in text
    body = "\n".join(line for line in text.splitlines() if not line.startswith("%")).replace("{!}{%", "{!}{")
    assert body.count("{") == body.count("}")
    assert not re.search(r"(?<!\\)[%_#]", body)
    rows = re.findall(r"^(?!\\)(.*) \\\\$", body, re.MULTILINE)
    assert len(rows) == 2 + 4
    assert {row.count("&") for row in rows[2:]} == {4}
    assert body.count(r"\begin{") == body.count(r"\end{") == 3
    assert inert.latex("a_b & 50 % ± ·") == r"a\_b \& 50 \% $\pm$ $\cdot$"


def test_a_damaged_evaluation_is_named(small, folder):
    path = next(folder.glob("results/runs/*/eval/*.json"))
    path.write_text('{"clean_acc": 0.5')
    with pytest.raises(UserError, match=f"{path.name}: is damaged, it cannot be read as JSON"):
        measure.measure_table(small, "small", folder)
    path.write_text('{"clean_acc": 0.5, "n": 2, "n_clean": 1}')
    with pytest.raises(UserError, match=f"{path.name}: is damaged, its contents do not have the SHA-256"):
        measure.measure_table(small, "small", folder)
    sealed.write(path, {"clean_acc": 0.5})
    with pytest.raises(UserError, match="misses n, n_clean"):
        measure.measure_table(small, "small", folder)


def test_files_are_replaced_at_once_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "a" / "b.md"
    files.write(path, "one")
    monkeypatch.setattr(files.os, "fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        files.write(path, "two")
    assert path.read_text() == "one"
    assert list(path.parent.iterdir()) == [path]
