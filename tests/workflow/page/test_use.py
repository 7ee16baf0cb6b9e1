"""The page in a real browser: sorting, what is behind a cell, keys."""

from tests.workflow.page.conftest import OURS

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
    assert [address.rpartition("/reports/")[2] for address in asked] == ["demo/index.html"]
    assert browser.run("return [...document.images].every((image) => image.complete && image.naturalWidth > 500)") is True


def test_a_head_sorts_up_down_and_back(browser):
    original = browser.run(COLUMN, 3, "ours")
    numbers = sorted((value for value in original if value), key=float)
    missing = [""] * (len(original) - len(numbers))
    assert len(numbers) >= 10
    assert missing, "rows without a number are there as well"
    browser.click(HEAD.format(4))
    assert browser.run(COLUMN, 3, "ours") == numbers + missing
    assert sort_states(browser)[3] == "ascending"
    assert sort_states(browser).count("none") == 8
    browser.click(HEAD.format(4))
    assert browser.run(COLUMN, 3, "ours") == numbers[::-1] + missing
    assert browser.run("return document.getElementById('said').textContent") == "Sorted by CIFAR10 FP, descending"
    browser.click(HEAD.format(4))
    assert browser.run(COLUMN, 3, "ours") == original
    assert set(sort_states(browser)) == {"none"}
    assert browser.console() == []


def test_texts_sort_too_and_another_head_takes_over(browser):
    browser.click(HEAD.format(4))
    browser.click(HEAD.format(1))
    methods = browser.run("return [...document.querySelectorAll('#main_comparison tbody tr')].map((row) => row.cells[0].textContent)")
    assert methods == sorted(methods, key=str.lower)
    assert methods[0] == "AT"
    assert sort_states(browser)[0] == "ascending"
    assert sort_states(browser)[3] == "none"


def test_the_choice_of_number_sorts_again(browser):
    browser.click(HEAD.format(5))
    browser.click('input[value="paper"]')
    paper = [float(value) for value in browser.run(COLUMN, 4, "paper") if value]
    assert paper == sorted(paper)
    assert paper[-1] == 45.06
    browser.click('input[value="difference"]')
    apart = [float(value) for value in browser.run(COLUMN, 4, "difference") if value]
    assert apart == sorted(apart)


def test_other_tables_sort(browser):
    browser.click("#claims th:nth-of-type(5) .sort")
    words = browser.run("return [...document.querySelectorAll('#claims tbody tr')].map((row) => row.cells[4].dataset.value)")
    assert words == sorted(words)
    assert len(set(words)) > 1


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
    assert box[0] is False
    assert "95 % interval" in box[1]
    assert "logs/" not in box[1]
    assert min(box[2]["left"], box[2]["top"]) >= 0
    assert box[2]["width"] > 100
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
