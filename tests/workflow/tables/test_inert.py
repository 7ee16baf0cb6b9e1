"""Names with the signs of HTML, Markdown, LaTeX and spreadsheets do nothing: in a real browser, a real TeX, and CSV files."""

import csv
import dataclasses
import io
import re
import shutil
import subprocess
import zipfile

import pytest

from methods.core import paths
from methods.core.errors import UserError
from tests.workflow import finished
from tests.workflow.page.browser import Browser
from workflow.suite.page import render as page
from workflow.suite.page import sheets
from workflow.suite.paper import checks
from workflow.suite.planning import plan
from workflow.suite.planning.config import ROOT
from workflow.suite.planning.tables import load_tables
from workflow.suite.tables import diff_text, inert, latex, markdown, render, sheet

SCRIPT = "</script><script>window.taken = 1</script><img src=x onerror='window.taken = 2'>"
TEX = r"\input{/etc/passwd} _&%$#{}~^ ^^41 \end{table} \write18{ls} é ≥ 漢"
SHEET = "=cmd|' /C calc'!A0\""
LINK = "[x](javascript:window.taken=3) | `*_a_*`"
EVIL = (SCRIPT, TEX, SHEET, LINK)


@pytest.fixture(scope="module")
def hostile():
    """The demo plan with one table all of whose texts are hostile."""
    demo = plan.load("demo", data_root=ROOT / "none")
    table = demo.tables["bn_ablation"]
    columns = tuple(dataclasses.replace(c, head=(text,)) for c, text in zip(table.columns, EVIL, strict=False))
    rows = tuple(dataclasses.replace(row, labels=(text,)) for row, text in zip(table.rows, EVIL, strict=True))
    words = {"title": SCRIPT, "caption": TEX, "label": TEX, "stub": (LINK,)}
    table = dataclasses.replace(table, columns=columns, rows=rows, **words)
    cells = {address: dataclasses.replace(cell, notes=EVIL) for address, cell in demo.cells.items() if cell.table == "bn_ablation"}
    lost = "bn_ablation.a1.lbn"
    cells[lost] = dataclasses.replace(cells[lost], runs=(), unavailable=SHEET)
    return dataclasses.replace(demo, tables={**demo.tables, "bn_ablation": table}, cells={**demo.cells, **cells})


@pytest.fixture(scope="module")
def folder(hostile, tmp_path_factory):
    place = finished.finish(hostile, hostile.final_runs("bn_ablation", "a01"), tmp_path_factory.mktemp("hostile"))
    render.write_table(hostile, "bn_ablation", place)
    checks.write_diff(hostile, place)
    page.write(hostile, place)
    return place


def test_in_a_real_browser(hostile, folder, tmp_path):
    with Browser(tmp_path) as browser:
        browser.open(folder / paths.page("demo"))
        assert browser.console() == []
        assert browser.run("return document.scripts.length") == 3
        assert browser.run("return document.querySelector('#bn_ablation h3').textContent").startswith(SCRIPT)
        labels = browser.run("return [...document.querySelectorAll('#bn_ablation tbody th')].map((head) => head.textContent)")
        assert labels == list(EVIL)
        browser.show('[data-address="bn_ablation.a01.lbn"]')
        browser.click('[data-address="bn_ablation.a01.lbn"]')
        notes = browser.run("return [...document.querySelectorAll('#detail dd')].map((text) => text.innerText).join(' ')")
        assert SCRIPT in notes
        links = browser.run("return [...document.links].map((link) => link.getAttribute('href'))")
        assert not [link for link in links if re.match(r"\s*\w+:", link)], "no link has a scheme"
        assert browser.run("return window.taken") is None
        assert len([address for address in browser.requested() if not address.startswith("data:")]) == 1


def test_in_snakemakes_own_report(hostile, snakemake, tmp_path_factory):
    """Its archive is made of the finished table, unpacked, and walked through."""
    finished.finish(hostile, hostile.final_runs("bn_ablation", "a01"), snakemake.folder)
    render.write_table(hostile, "bn_ablation", snakemake.folder)
    code, output = snakemake(paths.table("demo", "bn_ablation", "csv"), "--report", "report.zip")
    assert code == 0, output
    with zipfile.ZipFile(snakemake.folder / "report.zip") as content:
        content.extractall(snakemake.folder)
    [kept] = (snakemake.folder / "report").rglob("bn_ablation.csv")
    assert inert.csv_entry(SHEET) in [entry for line in csv.reader(io.StringIO(kept.read_text())) for entry in line]
    with Browser(tmp_path_factory.mktemp("profile")) as browser:
        browser.open(snakemake.folder / "report" / "report.html")
        browser.run("[...document.links].find((link) => link.innerText.trim() === 'Results').click()")
        assert "bn_ablation" in browser.run("return document.body.innerText")
        assert browser.run("return window.taken") is None
        assert [address for address in browser.requested() if not address.startswith(("file:", "data:"))] == []


def test_a_script_that_came_in_all_the_same_would_not_run(folder, tmp_path):
    text = (folder / paths.page("demo")).read_text()
    broken = tmp_path / "page.html"
    broken.write_text(text.replace("<main>", "<main><script>window.taken = 1</script><p onclick='window.taken = 2' id='bait'>x</p>"))
    with Browser(tmp_path / "profile") as browser:
        browser.open(broken)
        browser.click("#bait")
        assert browser.run("return window.taken") is None
        assert any("Content Security Policy" in line for line in browser.console())


def test_in_a_real_tex(pdflatex, hostile, folder, tmp_path):
    text = latex.table(hostile, "bn_ablation", folder, made_by="x\n\\input{/etc/passwd}")
    (tmp_path / "t.tex").write_text(
        r"\documentclass{article}\usepackage{booktabs,graphicx,rotating,siunitx}\begin{document}\input{table}\end{document}"
    )
    (tmp_path / "table.tex").write_text(text)
    command = [pdflatex, "-no-shell-escape", "-halt-on-error", "-interaction=nonstopmode", "t.tex"]
    for _ in range(2):  # labels are read back the second time
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace", timeout=120)
        assert done.returncode == 0, done.stdout[-3000:]
    assert "/etc/passwd" not in re.sub(r"\s", "", done.stdout), "nothing was read but the table"
    if shutil.which("pdftotext"):
        shown = subprocess.run(["pdftotext", "-raw", "t.pdf", "-"], cwd=tmp_path, capture_output=True, text=True).stdout
        shown = re.sub(r"\s", "", shown.replace("\u02c6", "^").replace("\u02dc", "~"))  # TeX's own circumflex and tilde; _ is a rule
        for part in (r"\input{/etc/passwd}", "&%$#{}~^", "^^41", "[U+6F22]", "window.taken", "=cmd|"):
            assert part in shown


@pytest.mark.parametrize("text", ["=1+1", "+SUM(A1)", "-2+3", "@x", "\t=1", "\r=1", "\n=1", "'=1", "'", "=", "-"])
def test_no_entry_of_a_sheet_is_a_formula(text):
    entry = inert.csv_entry(text)
    assert not entry.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))
    assert inert.from_csv(entry) == text


@pytest.mark.parametrize("text", ["-2.00", "+3", "45.06", "", "1e-05", "p = 0.1", "Ours | RN34"])
def test_numbers_and_plain_texts_stay_as_they_are(text):
    assert inert.csv_entry(text) == text
    assert inert.from_csv(text) == text


def test_in_csv_files(hostile, folder):
    for text in (sheet.table(hostile, "bn_ablation", folder), diff_text.sheet(checks.compare.compare(hostile, folder))):
        entries = [entry for line in csv.reader(io.StringIO(text)) for entry in line]
        formulas = [entry for entry in entries if entry.startswith(("=", "+", "-", "@")) and not inert.NUMBER.fullmatch(entry)]
        assert formulas == []
        assert any(entry == "'" + SHEET for entry in entries)
    lines = sheets.read(folder / paths.diff("demo", "csv"))
    assert SHEET in {line["why"] for line in lines}, "the page shows what was meant"


def test_in_markdown(hostile, folder):
    texts = [markdown.table(hostile, "bn_ablation", folder, made_by=""), markdown.row(hostile, "bn_ablation", "a01", folder, made_by="")]
    texts.append((folder / paths.diff("demo", "md")).read_text())
    for text in texts:
        assert not re.search(r"<(?!/?(sup|u|br)>)", text)
        assert not re.search(r"(?<!\\)\]\(", text)
    grid = [line for line in texts[0].splitlines() if line.startswith("|")]
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in grid}) == 1, "a bar in a label starts no cell"


@pytest.mark.parametrize("name", ["=cmd", "<script>", "a&b", "a-b", "claims", "smallnet", "_x"])
def test_a_table_file_with_such_a_name_is_refused(tmp_path, name):
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / f"{name}.yaml").write_text("title: x")
    with pytest.raises(UserError, match="cannot be a table's name; allowed: small letters, digits and _, and none of complexity"):
        load_tables(tmp_path)
