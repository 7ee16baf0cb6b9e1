"""The notebooks of docs/: stored with what they print, run on frames with many numbers, few, and none."""

import os
import subprocess
import sys

import nbformat
import pandas as pd
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from docs.notebooks.__main__ import HERE, NAMES, execute
from workflow.suite.planning.config import ROOT
from workflow.suite.results.frame_columns import FLAG, NUMBER, TYPES, WHOLE

DEFAULTS = {WHOLE: 0, NUMBER: 0.0, FLAG: False}


def lines(**cells):
    """A frame with 500 images per cell; table__row__column = images that withstood the attack."""
    entries = []
    for address, hits in cells.items():
        table, row, column = address.replace("no_lbn", "no-lbn").split("__")
        entry = {name: DEFAULTS.get(type, "") for name, type in TYPES.items()}
        entry |= {"table": table, "row": row, "column": column, "scale": "lite", "name": row.upper(), "run": address, "paper": 40.0}
        entry |= {"n": 500, "n_robust": hits, "robust": hits / 5, "low": hits / 5 - 4, "high": hits / 5 + 4}
        entries.append(entry | {"r": {"r99": 0.99, "r5": 0.5}.get(column, 0.99), "a": 0.1})
    return pd.DataFrame(entries, columns=list(TYPES)).astype(TYPES)


MANY = {"sp_ratio__p01__r99": 200, "sp_ratio__p10__r99": 100, "sp_ratio__p01__r5": 50, "sp_ratio__p10__r5": 55}
MANY |= {"bn_ablation__a01__lbn": 100, "bn_ablation__a01__no_lbn": 150}
MANY |= {"main_comparison__ours__binary": 200, "main_comparison__hydra__binary": 195, "main_comparison__rst__binary": 50}


@pytest.fixture
def run(tmp_path):
    """run(name, frame) -> what each code cell prints or shows."""

    def execute(name, frame=None):
        path = tmp_path / "frame.csv"
        if frame is not None:
            frame.to_csv(path, index=False)
        command = [sys.executable, "-m", "docs.notebooks", name, "--out", str(tmp_path / "out")]
        done = subprocess.run(command, cwd=ROOT, env={**os.environ, "NOTEBOOK_FRAME": str(path)}, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return shown(tmp_path / "out" / f"{name}.ipynb")

    return execute


def shown(path):
    cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    return ["".join(out.get("text") or out["data"]["text/plain"] for out in cell.outputs) for cell in cells]


def words(line):
    return line.split()


@pytest.mark.parametrize("name", NAMES)
def test_stored_notebooks_were_run_to_the_end(name):
    notebook = nbformat.read(HERE / f"{name}.ipynb", as_version=4)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert any(cell.outputs for cell in cells)


def test_three_answers(run):
    start, _, adaptive, figure, norm, spread, best = run("results", lines(**MANY))
    assert "9 lines, 9 networks, scale lite" in start
    at_99, at_5 = (words(line) for line in adaptive.splitlines()[2:])
    assert at_99[:4] == ["0.99", "40.0", "20.0", "20.0"]
    assert at_99[6] == "better"
    assert at_5[:4] == ["0.50", "10.0", "11.0", "-1.0"]
    assert "cannot be told apart" in adaptive.splitlines()[3]
    assert figure.startswith("<Figure")
    assert words(norm.splitlines()[2])[:4] == ["0.1", "20.0", "30.0", "-10.0"]
    assert "worse" in norm
    assert "lbn: between 20.00 and 20.00 % over 1 networks" in spread
    assert words(best.splitlines()[2])[:5] == ["binary", "OURS", "40.0", "3", "hydra"]


def test_few_numbers_are_enough(run):
    *_, adaptive, _, norm, _, best = run("results", lines(sp_ratio__p01__r99=200, main_comparison__ours__binary=200))
    assert adaptive == norm == "'not measured yet'"
    assert words(best.splitlines()[2])[:3] == ["binary", "OURS", "40.0"]


def test_no_frame_says_how_to_make_one(run):
    start, *_ = run("results")
    assert "Nothing is measured: `snakemake --cores 8 all_tables --config scale=frame` makes frame.csv." in start


def test_own_network_and_method(run):
    text = "\n".join(run("own_network"))
    assert "of 100 images\n  after apgd-ce" in text
    assert "smooth_at-cifar10-rn18-fp" in text
    assert "epoch 2: loss" in text
    assert "of 100 images at 8/255, after two short epochs" in text


def test_an_error_ends_a_notebook_and_names_its_cell():
    notebook = new_notebook(cells=[new_code_cell("x = 1"), new_code_cell("x / 0")])
    with pytest.raises(ZeroDivisionError) as error:
        execute(notebook, "broken")
    assert error.traceback[-1].frame.code.raw.co_filename == "broken.ipynb, cell 2"


def test_the_value_of_the_last_line_is_shown():
    notebook = new_notebook(cells=[new_code_cell("print(1)\n2 + 3"), new_code_cell("4;")])
    execute(notebook, "small")
    assert [out.get("text") or out.data["text/plain"] for out in notebook.cells[0].outputs] == ["1\n", "5"]
    assert notebook.cells[1].outputs == []
