"""Every LaTeX table compiles as it is, with booktabs alone, and fits on a page."""

import re
import subprocess

from methods.core import paths
from tests.workflow import finished
from workflow.suite.paper import checks
from workflow.suite.planning import plan
from workflow.suite.planning.config import ROOT
from workflow.suite.tables import render

PAPER_WIDTH = 597.0  # points, of A4; letter is wider
# Tables are set in a box as wide as the text, so nothing would complain if they left the page: measure what is in the box.
DOCUMENT = r"""
\documentclass{article}
\usepackage{booktabs}
\def\makebox[#1][#2]#3{\setbox0\hbox{#3}\typeout{WIDTH \the\wd0}\hbox to #1{\hss\box0\hss}}
\begin{document}
%s
\end{document}
"""


def test_all_tables_compile_and_fit(pdflatex, tmp_path):
    demo = plan.load("demo", data_root=ROOT / "none")
    finished.finish(demo, demo.final_runs("bn_ablation"), tmp_path)
    names = [*demo.tables, *paths.CLOSED]
    for name in demo.tables:
        render.write_table(demo, name, tmp_path)
    for name in paths.CLOSED:
        checks.write_closed(demo, name, tmp_path)
    folder = (tmp_path / paths.table("demo", "x", "tex")).parent
    (folder / "all.tex").write_text(DOCUMENT % "\\clearpage\n".join(f"\\input{{{name}}}" for name in names))
    command = [pdflatex, "-halt-on-error", "-interaction=nonstopmode", "all.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", timeout=300)
    assert done.returncode == 0, done.stdout[-3000:]
    assert (folder / "all.pdf").read_bytes().startswith(b"%PDF")
    widths = dict(zip(names, map(float, re.findall(r"^WIDTH ([0-9.]+)pt", done.stdout, re.MULTILINE)), strict=True))
    assert {name: width for name, width in widths.items() if width > PAPER_WIDTH} == {}
    assert not re.search(r"Overfull|undefined|multiply defined", (folder / "all.log").read_text(errors="replace"))


def test_the_command_in_a_table_works(pdflatex, tmp_path):
    demo = plan.load("demo", data_root=ROOT / "none")
    path = render.write_table(demo, "vanilla", tmp_path)[1]
    words = re.search(r"^% pdflatex '(.*)'$", path.read_text(), re.MULTILINE)[1]
    command = [pdflatex, "-halt-on-error", "-interaction=nonstopmode", "-jobname=alone", words]
    done = subprocess.run(command, cwd=path.parent, capture_output=True, text=True, errors="replace", timeout=300)
    assert done.returncode == 0, done.stdout[-3000:]
    assert (path.parent / "alone.pdf").is_file()
