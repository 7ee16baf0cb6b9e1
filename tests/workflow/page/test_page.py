"""The page: complete and self-contained as a file, and working in a real browser."""

import dataclasses
import json
import re
from html.parser import HTMLParser

import pytest

from methods.core import paths, sealed
from methods.core.errors import UserError
from tests.workflow import finished
from tests.workflow.page.browser import Browser
from workflow.suite.__main__ import main
from workflow.suite.figures import catalogue
from workflow.suite.page import details, render, sheets
from workflow.suite.paper import checks
from workflow.suite.planning import plan
from workflow.suite.planning.config import ROOT
from workflow.suite.planning.tables import load_tables

OURS = "main_comparison.ours.cifar10-binary"


@pytest.fixture(scope="module")
def demo():
    return plan.load("demo", data_root=ROOT / "none")


@pytest.fixture(scope="module")
def folder(demo, tmp_path_factory):
    """Finished: the CIFAR-10 columns of the main comparison; with the comparison to the paper, the claims, and one figure."""
    cells = [cell for cell in demo.cells_of("main_comparison") if cell.column.startswith("cifar10")]
    place = finished.finish(demo, [run for cell in cells for run in cell.runs], tmp_path_factory.mktemp("page"))
    checks.write_diff(demo, place)
    checks.write_claims(demo, place)
    catalogue.write(demo, "kernel_histogram", place)
    log = place / paths.log("train", demo.cells[OURS].runs[0])
    log.parent.mkdir(parents=True)
    log.write_text("epoch 1")
    render.write(demo, place)
    return place


@pytest.fixture(scope="module")
def text(demo, folder):
    return (folder / paths.page(demo.scale.name)).read_text()


class Reader(HTMLParser):
    """Ids, links, sources and unclosed tags of a document."""

    EMPTY = frozenset({"meta", "link", "img", "input", "br"})

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.open = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.ids += [found["id"]] if "id" in found else []
        self.links += [found[key] for key in ("href", "src") if key in found]
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


# The file


def test_the_file_is_well_formed_and_refers_to_nothing_outside(text):
    found = Reader(text)
    assert found.open == [] and len(found.ids) == len(set(found.ids))
    assert all(link.startswith(("#", "data:")) for link in found.links)
    assert all(link[1:] in found.ids for link in found.links if link.startswith("#"))
    assert not re.search(r"(?:https?:)?//[a-z]", re.sub(r"base64,[^\"]*", "", text)), "no address of a network"


def test_every_cell_has_its_detail(demo, folder, text):
    behind = json.loads(re.search(r'<script type="application/json" id="details">(.*?)</script>', text)[1])
    assert list(behind) == list(demo.cells)
    assert set(re.findall(r'data-address="([^"]+)"', text)) == set(demo.cells)
    lines = {label: [entry["text"] for entry in entries] for label, entries in behind[OURS]["lines"]}
    run = demo.cells[OURS].runs[0]
    assert lines["Run, seed 1234"] == [demo.runs[run].id] and lines["Paper"] == ["45.06 %, bold"] and lines["Status"] == ["done"]
    assert lines["Logs"][0] == paths.log("train", run) and lines["Files"][0] == paths.run_folder(run)
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


def test_sections_that_are_not_made_yet_are_left_out(demo, tmp_path):
    text = render.page(demo, tmp_path, made_by="x")
    assert 'id="diff"' not in text and 'id="claims"' not in text
    assert text.count("Not drawn yet.") == len(catalogue.available(demo, tmp_path))


def test_text_from_files_cannot_become_markup(demo, tmp_path):
    evil = "</script><script>alert(1)</script>&"
    table = dataclasses.replace(demo.tables["sp_ratio"], title=evil, caption=evil)
    cell = dataclasses.replace(demo.cells["sp_ratio.p00.r5"], notes=(evil,))
    other = dataclasses.replace(demo, tables={"sp_ratio": table}, cells={**demo.cells, cell.address: cell})
    text = render.page(other, tmp_path, made_by=evil)
    assert "alert(1)" in text and "<script>alert" not in text
    assert Reader(text).open == []


def test_the_command_writes_the_page(folder, capsys, text):
    assert main(["page", "--directory", str(folder), "--data-root", "none"]) == 0
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
    item = finished_cell(two, cell, finished.finish(two, list(cell.runs), tmp_path))
    lines = dict(details.lines(item, details.Shelf(plan=two, folder=tmp_path), None))
    assert lines["Seeds"][0]["text"].startswith("2, standard deviation ")
    assert [lines[f"Run, seed {seed}"][0]["text"] for seed in (1, 2)] == [two.runs[run].id for run in cell.runs]


def finished_cell(planned, cell, folder):
    from workflow.suite.results.measure import measure

    return measure(planned, cell, folder)


# The browser


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture
def browser(session, folder):
    session.prefer("light")
    session.open(folder / paths.page("demo"))
    return session


HEAD = "#main_comparison th:nth-of-type({}) .sort"
COLUMN = """
    const rows = [...document.querySelectorAll('#main_comparison tbody tr')];
    return rows.map((row) => row.cells[arguments[0]].dataset[arguments[1]]);
"""


def sort_states(browser):
    return browser.run("return [...document.querySelectorAll('#main_comparison th[aria-sort]')].map((head) => head.ariaSort)")


def test_it_loads_without_complaint_and_without_network(browser):
    assert browser.console() == []
    asked = [address for address in browser.requested() if not address.startswith("data:")]
    assert len(asked) == 1 and asked[0].endswith("/reports/demo/index.html")
    assert browser.run("return [...document.images].every((image) => image.complete && image.naturalWidth > 500)") is True
    assert browser.run("return document.documentElement.scrollWidth <= innerWidth") is True, "only tables scroll sideways"


def test_a_head_sorts_up_down_and_back(browser):
    original = browser.run(COLUMN, 3, "ours")
    numbers = sorted((value for value in original if value), key=float)
    missing = [""] * (len(original) - len(numbers))
    assert len(numbers) >= 10 and missing, "rows without a number are there as well"
    browser.click(HEAD.format(4))
    assert browser.run(COLUMN, 3, "ours") == numbers + missing
    assert sort_states(browser)[3] == "ascending" and sort_states(browser).count("none") == 8
    browser.click(HEAD.format(4))
    assert browser.run(COLUMN, 3, "ours") == numbers[::-1] + missing
    assert browser.run("return document.getElementById('said').textContent") == "Sorted by CIFAR10 FP, descending"
    browser.click(HEAD.format(4))
    assert browser.run(COLUMN, 3, "ours") == original and set(sort_states(browser)) == {"none"}
    assert browser.console() == []


def test_texts_sort_too_and_another_head_takes_over(browser):
    browser.click(HEAD.format(4))
    browser.click(HEAD.format(1))
    methods = browser.run("return [...document.querySelectorAll('#main_comparison tbody tr')].map((row) => row.cells[0].textContent)")
    assert methods == sorted(methods, key=str.lower) and methods[0] == "AT"
    assert sort_states(browser)[0] == "ascending" and sort_states(browser)[3] == "none"


def test_the_choice_of_number_sorts_again(browser):
    browser.click(HEAD.format(5))
    browser.click('input[value="paper"]')
    paper = [float(value) for value in browser.run(COLUMN, 4, "paper") if value]
    assert paper == sorted(paper) and paper[-1] == 45.06
    browser.click('input[value="difference"]')
    apart = [float(value) for value in browser.run(COLUMN, 4, "difference") if value]
    assert apart == sorted(apart)


def test_other_tables_sort(browser):
    browser.click("#claims th:nth-of-type(6) .sort")
    words = browser.run("return [...document.querySelectorAll('#claims tbody tr')].map((row) => row.cells[5].textContent)")
    assert words == sorted(words) and len(set(words)) > 1


def test_a_cell_opens_its_detail_and_escape_closes_it(browser, demo):
    cell = f'[data-address="{OURS}"]'
    browser.click(cell)
    shown = browser.run("const box = document.getElementById('detail'); return [box.open, box.innerText]")
    assert shown[0] is True
    for words in (demo.runs[demo.cells[OURS].runs[0]].id, "95 % interval", "45.06 %", "Verdict", "logs/train/", "Ours, RN34-LBN, p = 0.1"):
        assert words in shown[1]
    browser.press("Escape")
    assert browser.run("return document.getElementById('detail').open") is False
    assert browser.run("return document.activeElement.dataset.address") == OURS, "the reader is back where they were"
    assert browser.console() == []


def test_pointing_at_a_cell_shows_a_tip(browser):
    browser.show(f'[data-address="{OURS}"]')
    browser.point_at(f'[data-address="{OURS}"]')
    script = "const tip = document.getElementById('tip'); return [tip.hidden, tip.innerText, tip.getBoundingClientRect().toJSON()]"
    box = browser.run(script)
    assert box[0] is False and "95 % interval" in box[1] and "logs/" not in box[1]
    assert box[2]["left"] >= 0 and box[2]["top"] >= 0 and box[2]["width"] > 100
    browser.point_at("#main_comparison h3")
    assert browser.run("return document.getElementById('tip').hidden") is True


def test_keys_are_enough(browser):
    browser.run("document.querySelector('#main_comparison .cell').focus()")
    browser.press("ArrowRight", "ArrowDown")
    assert browser.run("return document.activeElement.dataset.address") == "main_comparison.at-lbn.cifar10-binary"
    browser.press("Enter")
    assert browser.run("return document.getElementById('detail-head').textContent") == "AT, RN34-LBN, Not Pruned, CIFAR10, Binary"
    browser.press("Escape", "Tab")
    assert browser.run("return document.activeElement.closest('article').id") != "main_comparison", "one tab stop per table"
    browser.run("document.querySelector('#main_comparison .sort').focus()")
    browser.press("Enter")
    assert sort_states(browser)[0] == "ascending"


def test_light_and_dark(browser):
    def colour():
        return browser.run("return getComputedStyle(document.body).backgroundColor")

    light = colour()
    browser.prefer("dark")
    dark = colour()
    assert light == "rgb(255, 255, 255)" and dark != light
    browser.click("#theme")
    assert colour() == light and browser.run("return document.getElementById('theme').textContent") == "Theme: light"
    browser.reload()
    assert colour() == light, "the choice is remembered"
    browser.click("#theme")
    browser.prefer("light")
    assert colour() == dark
    browser.click("#theme")
    assert colour() == light


CONTRAST = """
    const parse = (text) => text.match(/[0-9.]+/g).slice(0, 3).map(Number);
    const light = (colour) => parse(colour).map((c) => c / 255).map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
      .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
    const back = (node) => { for (; node; node = node.parentElement) {
      const colour = getComputedStyle(node).backgroundColor;
      if (!colour.startsWith("rgba(0, 0, 0, 0")) return colour;
    } };
    return arguments[0].map((selector) => {
      const node = document.querySelector(selector);
      const [a, b] = [light(getComputedStyle(node).color), light(back(node))].sort((x, y) => y - x);
      return (a + 0.05) / (b + 0.05);
    });
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read(browser, scheme):
    """The contrast that WCAG AA asks of small text."""
    browser.prefer(scheme)
    selectors = ["body", ".banner", ".paper", ".about", "nav a", "thead th", ".word.true", ".word.false", ".word.stale", "figcaption"]
    ratios = dict(zip(selectors, browser.run(CONTRAST, selectors), strict=True))
    assert {selector: ratio for selector, ratio in ratios.items() if ratio < 4.5} == {}
