"""How the page looks in a real browser: colours, contrast, widths, words."""

import re

import pytest


def test_light_and_dark(browser):
    def colour():
        return browser.run("return getComputedStyle(document.body).backgroundColor")

    light = colour()
    browser.prefer("dark")
    dark = colour()
    assert light == "rgb(255, 255, 255)"
    assert dark != light
    browser.click("#theme")
    assert colour() == light
    assert browser.run("return document.getElementById('theme').textContent") == "Theme: light"
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


SCROLLERS = """
    const over = (box) => [box.closest('article, section').id, box.scrollWidth - box.clientWidth];
    return Object.fromEntries([...document.querySelectorAll('.scroll')].map(over));
"""


@pytest.mark.parametrize("width", [1400, 1280, 400])
def test_the_page_never_scrolls_sideways(browser, width):
    browser.resize(width, 800)
    assert browser.run("return innerWidth") == width
    assert browser.run("return document.documentElement.scrollWidth <= document.documentElement.clientWidth") is True


def test_every_table_fits_1400_pixels(browser):
    browser.resize(1400, 800)
    assert {name: over for name, over in browser.run(SCROLLERS).items() if over > 0} == {}


def test_on_a_telephone_long_sheets_are_cards(browser):
    browser.resize(400, 800)
    over = browser.run(SCROLLERS)
    assert (over["diff"], over["claims"]) == (0, 0)
    heads = browser.run(
        "return [...document.querySelectorAll('#claims tbody tr:first-child td')].map((cell) => getComputedStyle(cell, '::before').content)"
    )
    assert heads[3] == '"claim, and the rule that tests it"'


def test_sentences_are_apart(browser):
    texts = browser.run("return [...document.querySelectorAll('p, figcaption')].map((node) => node.innerText)")
    assert any("reproduced, lower" in re.sub(r"\s+", " ", text) for text in texts), "the legend is among them"
    assert [text for text in texts if re.search(r"[a-z]{2}[.:;,][A-Z]", text)] == []
