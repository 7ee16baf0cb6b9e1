"""Cells by patterns of their addresses."""

import pytest

from methods.core import paths
from methods.core.errors import UserError
from workflow.suite.planning import plan, selection


@pytest.fixture
def planned(repository, tmp_path):
    return plan.load("demo", data_root=tmp_path, root=repository)


def test_cells_come_in_the_order_of_the_patterns_and_once(planned):
    addresses = [cell.address for cell in selection.cells(planned, ["small.other.*", "small.*.fp"])]
    assert addresses[:2] == ["small.other.fp", "small.other.binary"]
    assert sorted(addresses[2:]) == ["small.later.fp", "small.ours.fp", "small.ref.fp"]


def test_targets_are_the_evaluations_of_cells_that_have_runs(planned):
    [run] = planned.cells["small.ours.binary"].runs
    assert selection.targets(planned, ["small.ours.*"]) == [paths.evaluation(run, planned.evaluations[run].id)]


def test_a_pattern_without_a_cell_is_a_mistake(planned):
    with pytest.raises(UserError, match="'small.nobody' matches no cell of scale 'demo'; cells are named table.row.column"):
        selection.cells(planned, ["small.*", "small.nobody"])
