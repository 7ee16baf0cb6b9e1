"""Searching and filtering the page, in a real browser."""

import csv

from methods.core import paths
from tests.workflow.page.conftest import OURS

SHOWN = """
    const rows = [...document.querySelectorAll(`#${arguments[0]} tr[data-methods]`)].filter((row) => row.checkVisibility());
    return rows.map((row) => [...row.cells].slice(0, arguments[1]).map((cell) => cell.dataset.value));
"""
HITS = "return document.getElementById('hits').textContent"


def shown(browser, name, columns=1):
    """The first entries of the visible rows of a table."""
    return browser.run(SHOWN, name, columns)


def lines(folder, kind):
    with (folder / kind("demo", "csv")).open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_without_a_question_everything_is_shown(browser, demo, folder):
    assert len(shown(browser, "main_comparison")) == len(demo.tables["main_comparison"].rows)
    assert len(shown(browser, "claims")) == len(lines(folder, paths.claims))
    assert browser.run(HITS) == ""
    assert browser.run("return document.getElementById('clear').hidden") is True


def test_every_word_has_to_be_there(browser):
    browser.type("#search", "FLYINGBIRD  cifar100")
    assert shown(browser, "main_comparison") == [], "a row of a table has no column to its name"
    rows = shown(browser, "diff", 3)
    assert ["main_comparison", "flyingbird", "cifar100-fp"] in rows
    assert {column.partition("-")[0] for _, _, column in rows} == {"cifar100"}


def test_a_method_is_found_in_every_table_that_has_it(browser, demo):
    browser.type("#search", "hydra")
    assert shown(browser, "main_comparison") == [["HYDRA"]]
    assert shown(browser, "bn_ablation") == []
    assert browser.run("return document.getElementById('bn_ablation').hidden") is True
    listed = browser.run("return [...document.querySelectorAll('tr[data-of]')].filter((row) => !row.hidden).map((row) => row.dataset.of)")
    assert listed == [name for name, table in demo.tables.items() if any("HYDRA" in row.labels for row in table.rows)]
    assert {row[0] for row in shown(browser, "diff")} == set(listed), "its differences are found by the label of the row too"


def test_the_name_of_a_table_finds_the_whole_table(browser, demo):
    browser.type("#search", "bn_ablation")
    assert len(shown(browser, "bn_ablation")) == len(demo.tables["bn_ablation"].rows)
    assert shown(browser, "main_comparison") == []


def test_claims_and_figures_are_found(browser):
    browser.type("#search", "C17")
    assert shown(browser, "claims") == [["C17"]]
    assert browser.run(HITS) == "1 claim"
    browser.click("#clear")
    browser.type("#search", "kept weights per kernel")
    assert browser.run("return document.getElementById('kernel_histogram').checkVisibility()") is True
    assert browser.run("return document.getElementById('ratio_map').checkVisibility()") is False


def test_the_id_of_a_run_finds_its_rows(browser, demo):
    browser.type("#search", demo.runs[demo.cells[OURS].runs[0]].id)
    assert ["Ours", "RN34-LBN"] in shown(browser, "main_comparison", 2)
    assert ["AT", "RN34"] not in shown(browser, "main_comparison", 2)


def test_a_short_word_starts_a_word(browser):
    browser.type("#search", "at")
    methods = {row[0] for row in shown(browser, "main_comparison")}
    assert {"AT", "ATMC"} <= methods
    assert not {"BCS", "HYDRA"} & methods, "theirs are data too"


def test_a_method_is_chosen(browser, demo):
    browser.click('#method option[value="FlyingBird"]')
    assert shown(browser, "main_comparison") == [["FlyingBird"]], "not FlyingBird+"
    rows = {tuple(row[:2]) for row in shown(browser, "diff", 2)}
    assert ("main_comparison", "flyingbird") in rows
    assert {row for _, row in rows} == {row for _, row in rows if row.startswith("flyingbird") and "plus" not in row}
    assert shown(browser, "claims") == []


def test_a_verdict_on_cells_is_chosen(browser, folder):
    browser.click('#verdict option[value="cells: stale"]')
    stale = [[line["table"], line["row"], line["column"]] for line in lines(folder, paths.diff) if line["verdict"] == "stale"]
    assert shown(browser, "diff", 3) == stale
    assert len(shown(browser, "main_comparison")) == len({row for table, row, _ in stale if table == "main_comparison"})
    faded = "return [...document.querySelectorAll('#main_comparison .faded .cell')].map((cell) => cell.dataset.address.split('.'))"
    both = {tuple(address) for address in browser.run(faded)} & {tuple(address) for address in stale}
    assert both == set(), "cells with the verdict stand out"
    assert browser.run("return document.querySelectorAll('#main_comparison .faded').length") > 0


def test_a_verdict_on_claims_is_chosen(browser, folder):
    browser.click('#verdict option[value="paper: FALSE"]')
    assert [row[0] for row in shown(browser, "claims")] == [line["id"] for line in lines(folder, paths.claims) if line["paper"] == "FALSE"]
    assert shown(browser, "main_comparison") == []


def test_what_is_asked_for_comes_together(browser):
    browser.click('#method option[value="Ours"]')
    browser.click('#verdict option[value="cells: stale"]')
    browser.type("#search", "lbn p = 0.1")
    assert shown(browser, "main_comparison", 3) == [["Ours", "RN34-LBN", "p = 0.1"]]
    browser.click("#clear")
    assert len(shown(browser, "main_comparison")) > 10
    assert browser.run("return ['search', 'method', 'verdict'].map((id) => document.getElementById(id).value)") == ["", "", ""]
    assert browser.run("return document.querySelectorAll('.faded').length") == 0


def test_where_nothing_matches_the_page_says_so(browser):
    browser.type("#search", "no such words")
    assert browser.run(HITS) == "Nothing matches."
    assert browser.run("return [...document.querySelectorAll('main > section')].every((section) => section.hidden)") is True


def test_hits_lead_to_their_section(browser):
    browser.type("#search", "hydra")
    browser.click('#hits a[href="#diff"]')
    assert browser.run("return location.hash") == "#diff"
    assert shown(browser, "main_comparison") == [["HYDRA"]], "what was asked for stays"


def test_a_link_to_something_hidden_shows_everything(browser):
    browser.type("#search", "C17")
    browser.click('nav a[href="#figures"]')
    assert browser.run("return document.getElementById('figures').checkVisibility()") is True
    assert browser.run("return document.getElementById('search').value") == ""


def test_keys_pass_over_hidden_rows(browser):
    browser.type("#search", "flyingbird")
    browser.press("Tab", "Tab", "Tab")  # the lists, the button
    browser.run("document.querySelector('#main_comparison .cell[tabindex=\"0\"]').focus()")
    assert browser.run("return document.activeElement.dataset.address") == "main_comparison.flyingbird.cifar10-fp"
    browser.press("ArrowDown")
    assert browser.run("return document.activeElement.dataset.address") == "main_comparison.flyingbird-plus.cifar10-fp"
    browser.press("ArrowDown")
    assert browser.run("return document.activeElement.dataset.address") == "main_comparison.flyingbird-plus.cifar10-fp", (
        "the last one shown"
    )


def test_sorting_keeps_what_is_hidden_hidden(browser):
    browser.type("#search", "flyingbird")
    browser.click("#main_comparison th:nth-of-type(4) .sort")
    assert sorted(shown(browser, "main_comparison")) == [["FlyingBird"], ["FlyingBird+"]]
