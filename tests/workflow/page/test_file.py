"""The page as a file: complete and self-contained."""

import dataclasses
import json
import re
from html.parser import HTMLParser

import pytest

from methods.core import paths, sealed
from methods.core.errors import UserError
from tests.workflow import finished
from tests.workflow.page.conftest import OURS
from workflow.suite.__main__ import main
from workflow.suite.figures import catalogue
from workflow.suite.page import details, render, sheets
from workflow.suite.planning import plan
from workflow.suite.planning.config import ROOT
from workflow.suite.planning.tables import load_tables
from workflow.suite.results.measure import measure


class Reader(HTMLParser):
    """Ids, links, sources and unclosed tags of a document."""

    EMPTY = frozenset({"meta", "link", "img", "input", "br"})

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.open = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        self.ids += [named["id"]] if "id" in named else []
        self.links += [named[key] for key in ("href", "src") if key in named]
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_file_is_well_formed_and_refers_to_nothing_outside(folder, text):
    document = Reader(text)
    assert document.open == []
    assert len(document.ids) == len(set(document.ids))
    assert [link for link in document.links if link.startswith("#") and link[1:] not in document.ids] == []
    files = [link for link in document.links if not link.startswith(("#", "data:"))]
    page = (folder / paths.page("demo")).parent
    assert [link for link in files if not (page / link).is_file()] == []
    assert not re.search(r"(?:https?:)?//[a-z]", re.sub(r"base64,[^\"]*", "", text)), "no address of a network"


def test_every_cell_has_its_detail(demo, folder, text):
    behind = json.loads(re.search(r'<script type="application/json" id="details">(.*?)</script>', text)[1])
    assert list(behind) == list(demo.cells)
    assert set(re.findall(r'data-address="([^"]+)"', text)) == set(demo.cells)
    lines = {label: [entry["text"] for entry in entries] for label, entries in behind[OURS]["lines"]}
    run = demo.cells[OURS].runs[0]
    assert lines["Run, seed 1234"] == [demo.runs[run].id]
    assert lines["Paper"] == ["45.06 %, bold"]
    assert lines["Status"] == ["done"]
    assert lines["Logs"][0] == paths.log("train", run)
    assert lines["Files"][0] == paths.run_folder(run)
    packed = sealed.read(folder / paths.train_manifest(run))["bytes"]
    assert lines["Network"] == [f"{packed:,} bytes", paths.compact(run)]
    assert lines["Verdict"][0].startswith("stale: "), "what the comparison says stands here as well"
    skipped = {label: entries[0]["text"] for label, entries in behind["main_comparison.ours.cifar10-fp"]["lines"]}
    assert skipped == {"Status": "not applicable", "Paper": "a dash", "Why": "the method trains binary weights only"}


def test_files_that_exist_are_linked_from_where_the_page_lies(demo, folder, text):
    behind = json.loads(re.search(r'<script type="application/json" id="details">(.*?)</script>', text)[1])
    links = [entry for label, entries in behind[OURS]["lines"] for entry in entries if label in ("Files", "Logs")]
    page = (folder / paths.page("demo")).parent
    assert sum("href" in entry for entry in links) == 3, "the evaluation has left no log here"
    assert all((page / entry["href"]).exists() for entry in links if "href" in entry)


def test_the_audit_of_the_paper_is_linked(folder, text):
    link = re.search(r'<a href="([^"]+)">Paper audit</a>', text)[1]
    assert (folder / paths.page("demo")).parent.joinpath(link).resolve() == (folder / paths.paper_audit()).resolve()


def test_differences_that_are_measured_come_first(demo, folder):
    lines = sheets.differences(demo, folder).lines
    measured = [bool(line.entries[3].text) for line in lines]
    assert 0 < sum(measured) < len(lines)
    assert measured == sorted(measured, reverse=True)
    assert len(lines) == len(sheets.read(folder / paths.diff("demo", "csv")))


def test_sections_that_are_not_made_yet_are_left_out(demo, tmp_path):
    text = render.page(demo, tmp_path, made_by="x")
    assert 'id="diff"' not in text
    assert 'id="claims"' not in text
    assert "Paper audit" not in text
    assert text.count("Not drawn yet.") == len(catalogue.available(demo, tmp_path))


def test_text_from_files_cannot_become_markup(demo, tmp_path):
    evil = "</script><script>alert(1)</script>&"
    table = dataclasses.replace(demo.tables["sp_ratio"], title=evil, caption=evil)
    cell = dataclasses.replace(demo.cells["sp_ratio.p00.r5"], notes=(evil,))
    other = dataclasses.replace(demo, tables={"sp_ratio": table}, cells={**demo.cells, cell.address: cell})
    text = render.page(other, tmp_path, made_by=evil)
    assert "alert(1)" in text
    assert "<script>alert" not in text
    assert Reader(text).open == []


def test_the_command_writes_the_page(folder, capsys, text):
    assert main(["page", "--directory", str(folder), "--data-root", str(ROOT / "none")]) == 0
    assert capsys.readouterr().out.strip() == str(folder / paths.page("demo"))
    assert (folder / paths.page("demo")).read_text() == text, "equal results make an equal page"


def test_a_foreign_picture_is_refused(demo, tmp_path):
    path = tmp_path / paths.figure("demo", "mask_full", "png")
    path.parent.mkdir(parents=True)
    path.write_bytes(b"not a picture")
    with pytest.raises(UserError, match="mask_full.png: is not a figure of this suite .*draw it again"):
        render.page(demo, tmp_path, made_by="x")


def test_small_markup():
    assert sheets.emphasis("a **b** <c>") == "a <b>b</b> &lt;c&gt;"
    assert sheets.formula("2c^2r_{in}") == "2c<sup>2</sup>r<sub>in</sub>"


def test_seeds_are_listed(demo, tmp_path):
    scale = dataclasses.replace(demo.scale, seeds=(1, 2))
    two = plan.build(load_tables(), plan.recipes.load_all(ROOT), scale, data_root=tmp_path)
    cell = two.cells[OURS]
    item = measure(two, cell, finished.finish(two, list(cell.runs), tmp_path))
    lines = dict(details.lines(item, details.Shelf(plan=two, folder=tmp_path), None, cell.notes))
    assert lines["Seeds"][0]["text"].startswith("2, standard deviation ")
    assert [lines[f"Run, seed {seed}"][0]["text"] for seed in (1, 2)] == [two.runs[run].id for run in cell.runs]
