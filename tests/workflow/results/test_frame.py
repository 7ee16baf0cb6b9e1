"""The frame: a typed line per cell and seed, the same in both files, and as the page describes it."""

import re
from pathlib import Path

import pandas as pd
import pytest

from methods.core import paths
from methods.core.errors import UserError
from tests.workflow.results.recorded import record
from workflow.suite.planning import plan
from workflow.suite.planning.config import ROOT
from workflow.suite.results import frame
from workflow.suite.results.frame_columns import COLUMNS, TYPES
from workflow.suite.tables import render

HITS = {"ref.fp": 32, "other.fp": 16, "other.binary": 8, "ours.binary": 24}


@pytest.fixture
def small(repository):  # noqa: F811
    return plan.load("demo", data_root=Path("none"), root=repository, seeds=(1, 2))


@pytest.fixture
def folder(small, finish):
    """Every cell has a first seed, one has a second, and of one Run everything is recorded."""
    for address, hits in HITS.items():
        finish(small, small.cells[f"small.{address}"].runs[0], n_clean=40, n_robust=hits)
    finish(small, small.cells["small.ref.fp"].runs[1], n_clean=40, n_robust=20)
    return finish.folder


def line_of(numbers, address, seed=1):
    row, column = address.split(".")
    (line,) = numbers[(numbers["row"] == row) & (numbers["column"] == column) & (numbers["seed"] == seed)].to_dict("records")
    return line


def test_a_line_per_cell_and_seed(small, folder):
    numbers = frame.collect(small, folder)
    lines = numbers[["table", "row", "column", "seed"]].to_records(index=False).tolist()
    first = [("small", *address.split("."), 1) for address in HITS]
    assert lines == [first[0], ("small", "ref", "fp", 2), *first[1:]]


def test_numbers_are_percent_with_the_interval_of_what_the_table_prints(small, folder):
    line = line_of(frame.collect(small, folder), "other.fp")
    assert (line["clean"], line["robust"], line["value"], line["paper"]) == (62.5, 25.0, 25.0, 30.0)
    assert (line["low"], line["high"]) == pytest.approx((16.015, 36.816), abs=1e-3)  # Wilson: 26.4156 -+ 10.4007
    assert (line["n"], line["n_clean"], line["n_robust"]) == (64, 40, 16)


def test_settings_stand_beside_the_numbers(small, folder):
    numbers = frame.collect(small, folder)
    ours, other = line_of(numbers, "ours.binary"), line_of(numbers, "other.fp")
    assert [ours[key] for key in ("method", "name", "precision", "lbn", "r", "p", "a")] == [
        *("binary_subnet", "Ours", "binary", True, 0.99, 0.1, 0.001)
    ]
    assert [other[key] for key in ("method", "name", "precision", "lbn", "r", "p")] == ["hydra", "HYDRA", "fp", False, 0.99, 1.0]
    assert pd.isna(other["a"])
    assert ours["pruning"] == "p = 0.1"
    assert ours["eps"] == pytest.approx(8 / 255)


def test_what_files_record_of_network_and_time(small, folder):
    run = small.cells["small.other.fp"].runs[0]
    record(small, run, folder)
    line = line_of(frame.collect(small, folder), "other.fp")
    assert len(small.lineage(run)) == 2
    assert (line["training_seconds"], line["evaluation_seconds"]) == (10 + 11, 7.5)
    assert (line["sparsity"], line["bytes"], line["validation"]) == (0.75, 1234, 50.0)
    assert (line["best_epoch"], line["epochs"]) == (4, 5)
    assert (line["engine"], line["evaluation_engine"], line["compute"]) == ("sparse", "dense", "fp32")
    assert (line["after_apgd_ce"], line["after_apgd_t"]) == (37.5, 25.0)
    assert (line["trust"], line["trust_fail"], line["trust_warn"]) == ("fail", "iterations", "gradients temperature")


def test_code_that_is_not_recorded_is_stale(small, folder):
    record(small, small.cells["small.other.fp"].runs[0], folder)
    numbers = frame.collect(small, folder)
    assert not line_of(numbers, "other.fp")["stale"]
    assert line_of(numbers, "ref.fp")["stale"]


def test_a_strategy_that_is_no_number_leaves_p_empty(small, folder):
    run = small.runs[small.cells["small.ours.binary"].runs[0]]
    run.spec["p"] = "global"
    line = line_of(frame.collect(small, folder), "ours.binary")
    assert pd.isna(line["p"])
    assert line["pruning"] == "Global"


@pytest.mark.parametrize("begun", [True, False], ids=["measured", "nothing measured"])
def test_both_files_give_the_frame_back(small, folder, tmp_path, begun):
    place = folder if begun else tmp_path / "empty"
    before = frame.collect(small, place)
    assert before.empty != begun
    written = render.write_frame(small, place)
    assert [path.relative_to(place).as_posix() for path in written] == [paths.frame("demo", kind) for kind in ("parquet", "csv")]
    for path in written:
        pd.testing.assert_frame_equal(frame.read(path), before)


def test_every_column_has_its_type(small, folder):
    assert {name: str(type) for name, type in frame.collect(small, folder).dtypes.items()} == TYPES


def test_the_csv_holds_no_formula(small, folder):
    numbers = frame.collect(small, folder).assign(data="=1+1")
    assert b",'=1+1," in frame.contents(numbers)["csv"]


@pytest.mark.parametrize("name", ["frame.parquet", "frame.csv"])
def test_another_file_is_refused(tmp_path, name):
    path = tmp_path / name
    pd.DataFrame({"run": ["at.000000000000"]}).to_csv(path) if path.suffix == ".csv" else path.write_bytes(b"PAR1")
    with pytest.raises(UserError, match=f"{name}: is not a frame of results"):
        frame.read(path)


def test_the_page_describes_the_frame():
    entries = re.findall(r"^\| `(\w+)` \| `(\w+)` \| (.+) \|$", (ROOT / "docs" / "frame.md").read_text(), re.MULTILINE)
    assert entries == [(column.name, column.type, column.meaning) for column in COLUMNS]
