"""`show`: results first, of a Run, a cell and a row, with several seeds and with phases."""

from pathlib import Path

import pytest

from methods.core import paths, sealed
from tests.workflow.results.recorded import record
from workflow.suite.planning import plan
from workflow.suite.results.show import show

RESULTS = """\
  clean       62.50 % [50.25, 73.33], 40 of 64 images
  robust      25.00 % [16.01, 36.82], 16 of 64 images
    apgd-ce   37.50 % left, broke 16
    apgd-t    25.00 % left, broke 8
    fab-t     25.00 % left, broke 0
    square    25.00 % left, broke 0
  validation  50.00 %, epoch 4 of 5
  sparsity    75.00 % of the weights are zero, r = 0.99
  size        1234 bytes (network.rbs)
  time        training 21 s, 2 phases; evaluation 8 s
  engine      training sparse, fp32; attacks dense
"""


@pytest.fixture
def small(repository):  # noqa: F811
    return plan.load("demo", data_root=Path("none"), root=repository, seeds=(1, 2))


@pytest.fixture
def folder(small, finish):
    """A cell with two seeds; of the first everything is recorded."""
    first, second = small.cells["small.other.fp"].runs
    finish(small, first, n_clean=40, n_robust=16)
    finish(small, second, n_clean=44, n_robust=12)
    record(small, first, finish.folder)
    return finish.folder


def entries(text):
    """Column head -> entry, of each line of the table that leads."""
    heads, rule, *lines = text.split("\n\n")[0].splitlines()
    starts = [i for i, sign in enumerate(rule) if sign == "-" and (i == 0 or rule[i - 1] == " ")]
    cut = [slice(start, end) for start, end in zip(starts, [*starts[1:], None], strict=True)]
    return [{heads[part].strip(): line[part].strip() for part in cut} for line in lines]


def test_a_run_leads_with_its_results(small, folder):
    run = small.cells["small.other.fp"].runs[0]
    head, text = show(small, run, folder).split("\n", 1)
    assert head == f"run {small.runs[run].id}: evaluated"
    assert text.startswith(RESULTS + "  folder: ")


def test_a_network_that_was_not_packed_says_why(small, folder):
    run = small.cells["small.other.fp"].runs[0]
    path = folder / paths.train_manifest(run)
    sealed.write(path, sealed.read(path) | {"bytes": None})
    text = show(small, run, folder)
    assert "\n  size        no network.rbs: a network that is not pruned is not packed, its model.safetensors is all there is\n" in text


def test_a_run_says_what_its_files_say(small, folder):
    """Without a manifest there is no network to tell of."""
    text = show(small, small.cells["small.other.fp"].runs[1], folder)
    assert "robust      18.75 %" in text
    assert not [word for word in ("validation ", "sparsity  ", "size ", "engine ") if f"\n  {word}" in text]


def test_a_run_that_waits_has_no_results(small, tmp_path):
    first, second, *_ = show(small, small.final_runs()[0], tmp_path).splitlines()
    assert first.endswith(": waiting")
    assert second.startswith("  folder: ")


def test_a_cell_has_a_line_per_seed(small, folder):
    first, second = entries(show(small, "small.other.fp", folder))
    assert [first[key] for key in ("row", "column", "seed", "clean", "robust")] == ["other", "fp", "1", "62.50", "25.00"]
    assert [first[key] for key in ("95 % interval", "paper", "apgd-ce", "square")] == [
        "[16.01, 36.82]",
        "30.00",
        "37.50 (-16)",
        "25.00 (-0)",
    ]
    assert [first[key] for key in ("validation", "sparsity", "bytes")] == ["50.00, epoch 4/5", "75.00 %", "1234"]
    assert [first[key] for key in ("training", "evaluation", "engine")] == ["21 s", "8 s", "sparse"]
    assert [second[key] for key in ("seed", "robust", "apgd-ce", "bytes")] == ["2", "18.75", "", ""]


def test_a_row_leads_with_its_cells(small, folder, finish):
    finish(small, small.cells["small.other.binary"].runs[0], n_clean=10, n_robust=5)
    text = show(small, "small.other", folder)
    assert [(line["column"], line["seed"]) for line in entries(text)] == [("fp", "1"), ("fp", "2"), ("binary", "1")]
    assert text.split("\n\n")[1].startswith("small.other.fp: done; ours 21.88 ± 4.42, paper 30.00")


def test_a_row_without_numbers_has_no_table(small, tmp_path):
    assert show(small, "small.other", tmp_path).startswith("small.other.fp: not run")
