"""Every LaTeX table compiles in every variant, with nothing over the edge; its numbers are aligned and its notes stand below."""

import re
import subprocess

import pytest

from methods.core import paths
from tests.workflow import finished
from workflow.suite.__main__ import main
from workflow.suite.paper import checks
from workflow.suite.planning import plan
from workflow.suite.planning.config import ROOT
from workflow.suite.tables import inert, latex, render
from workflow.suite.tables.latex import Variant

VARIANTS = [Variant(), Variant(paper=False), Variant(intervals=True), Variant(paper=False, intervals=True)]
# Tables are set in a box as wide as the text, so nothing would complain if they left the page: measure what is in the box.
DOCUMENT = r"""
\documentclass{article}
\usepackage{booktabs,graphicx,rotating,siunitx}
\def\makebox[#1][#2]#3{\setbox0\hbox{#3}\typeout{WIDTH \the\wd0}\hbox to #1{\hss\box0\hss}}
\begin{document}
\typeout{PAPER \the\paperwidth\space \the\paperheight}
%s
\end{document}
"""


def typeset(pdflatex, folder, text, name="all"):
    """Compile a document; its log, without the line breaks that TeX puts into it."""
    (folder / f"{name}.tex").write_text(text)
    command = [pdflatex, "-halt-on-error", "-interaction=nonstopmode", f"{name}.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", timeout=300)
    assert done.returncode == 0, done.stdout[-3000:]
    return (folder / f"{name}.log").read_text(errors="replace")


@pytest.fixture(scope="module")
def demo():
    return plan.load("demo", data_root=ROOT / "none")


@pytest.fixture(scope="module")
def folder(demo, tmp_path_factory):
    """Trained: nothing. Evaluated: everything, which is all that tables read."""
    place = tmp_path_factory.mktemp("latex")
    for run in demo.evaluations:
        finished.evaluate(demo, run, place)
    return place


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name or "usual")
def test_all_tables_compile_and_fit(pdflatex, demo, folder, tmp_path, variant):
    texts = {name: latex.table(demo, name, folder, made_by="x", variant=variant) for name in demo.tables}
    for name in paths.CLOSED:
        texts[name] = checks.write_closed(demo, name, tmp_path)[1].read_text()
    log = typeset(pdflatex, tmp_path, DOCUMENT % "\\clearpage\n".join(texts.values()))
    assert re.findall(r"Overfull.*|.*undefined.*|.*multiply defined.*", log) == []
    across, along = map(float, re.search(r"PAPER ([0-9.]+)pt ([0-9.]+)pt", log).groups())
    widths = dict(zip(texts, map(float, re.findall(r"^WIDTH ([0-9.]+)pt", log, re.MULTILINE)), strict=True))
    limits = {name: (along if r"\begin{sidewaystable}" in text else across) - 4 / 2.54 * 72.27 for name, text in texts.items()}
    assert {name: width for name, width in widths.items() if width > limits[name] + 0.1} == {}


def test_the_command_in_a_table_works(pdflatex, demo, tmp_path):
    path = render.write_table(demo, "vanilla", tmp_path)[1]
    words = re.search(r"^% pdflatex '(.*)'$", path.read_text(), re.MULTILINE)[1]
    command = [pdflatex, "-halt-on-error", "-interaction=nonstopmode", "-jobname=alone", words]
    done = subprocess.run(command, cwd=path.parent, capture_output=True, text=True, errors="replace", timeout=300)
    assert done.returncode == 0, done.stdout[-3000:]
    assert (path.parent / "alone.pdf").is_file()


def test_the_caption_is_short_and_the_notes_stand_below(demo, folder):
    text = latex.table(demo, "main_comparison", folder, made_by="x")
    caption = re.search(r"^\\caption\{(.*)\}$", text, re.MULTILINE)[1]
    assert caption == inert.latex_math(demo.tables["main_comparison"].caption)
    below = text.partition(r"\end{tabular}")[2]
    for words in ("NOT comparable with the paper's numbers", "reduced AutoAttack", "not applicable: the method trains binary weights only"):
        assert words in below


def test_what_the_variants_show(demo, folder):
    """Row a = 0.1 of the ablation has two columns; entries of a line are parted by ampersands."""

    def entries(variant):
        text = latex.table(demo, "bn_ablation", folder, made_by="x", variant=variant)
        return re.search(r"^0\.1 & (.*) \\\\$", text, re.MULTILINE)[1].split(" & ")

    assert len(entries(Variant())) == 4
    assert "41.01" in entries(Variant())[1]
    assert len(entries(Variant(paper=False))) == 2
    assert "41.01" not in " ".join(entries(Variant(paper=False)))
    assert re.fullmatch(r"\\scriptsize \{\[\}[0-9.]+, [0-9.]+\{\]\}", entries(Variant(intervals=True))[1])
    assert len(entries(Variant(intervals=True))) == 6
    assert len(entries(Variant(paper=False, intervals=True))) == 4


def test_the_command_writes_variants_beside_the_usual_table(demo, folder, capsys):
    common = ["render", "--table", "bn_ablation", "--directory", str(folder), "--data-root", str(ROOT / "none")]
    assert main([*common, "--ours"]) == 0
    assert capsys.readouterr().out.strip() == str(folder / "reports/demo/variants/bn_ablation.ours.tex")
    assert main([*common, "--ours", "--with-intervals"]) == 0
    assert capsys.readouterr().out.strip() == str(folder / "reports/demo/variants/bn_ablation.ours-intervals.tex")
    assert not (folder / paths.table("demo", "bn_ablation", "tex")).exists()
    variant = (folder / "reports/demo/variants/bn_ablation.ours.tex").read_text()
    assert "Small: the paper's number." not in variant
    assert "41.01" not in variant


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("p = 0.1", "$p = 0.1$"),
        ("at r = 0.99 and p = 0.1.", "at $r = 0.99$ and $p = 0.1$."),
        ("each pruning rate r and each p of", "each pruning rate $r$ and each $p$ of"),
        ("the paper's r, a row", "the paper's $r$, a row"),
        ("Small RN34-p0.1, p0 and x_p", r"Small RN34-p0.1, p0 and x\_p"),
        ("diff --scale demo", "diff -{}-{}scale demo"),
        ("_p = $1", r"\_p = \$1"),
    ],
)
def test_mathematics_in_words(text, shown):
    assert inert.latex_math(text) == shown


def test_marks_are_kept_where_numbers_are_aligned(pdflatex, tmp_path):
    """Bold and underlined numbers, with and without a tie, end at the same place as a plain one."""
    numbers = [latex._number(text, mark, signs) for text, mark, signs in MARKED]
    rows = "".join(rf"x & {number} & \\" + "\n" for number in numbers)
    body = rf"\sisetup{{detect-weight=true,mode=text}}\begin{{tabular}}{{lS[table-format=2.2{{{latex.TIE}}}]l}}{rows}\end{{tabular}}"
    log = typeset(pdflatex, tmp_path, DOCUMENT % body)
    assert "Overfull" not in log
    assert numbers == ["45.06", r"\bfseries 45.06", r"45.06 {\llap{\underline{\phantom{45.06}}}}", rf"9.38 {{{latex.TIE}}}", "{--}"]


MARKED = [("45.06", None, ""), ("45.06", "bold", ""), ("45.06", "underline", ""), ("9.38", None, latex.TIE), ("-", None, "")]
