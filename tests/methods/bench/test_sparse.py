"""The bench of the sparse engine compares only sides whose answers agree."""

import json
from functools import partial

import pytest
import torch

from methods.bench import growth, sparse, sparse_steps, turns
from methods.bench.steps import batch
from methods.core.errors import UserError
from methods.sparse import backward


def test_sides_that_differ_have_no_ratio():
    rows = torch.rand(4, 3)
    turns.agree("rows", rows * (1 + 1e-5), rows)
    with pytest.raises(UserError, match="no ratio is taken"):
        turns.agree("rows", rows * 1.1, rows)
    with pytest.raises(UserError):
        turns.agree("rows", rows * torch.nan, rows)


def test_a_side_may_be_as_far_from_the_truth_as_the_other():
    """A deep network amplifies rounding: what counts is the distance from double precision."""
    exact = torch.rand(4, 3, dtype=torch.float64)
    turns.as_close("rows", exact * 1.02, exact * 0.985, exact)
    turns.as_close("rows", exact * (1 + 5e-5), exact, exact)
    with pytest.raises(UserError, match="4.0e-02 from those in double precision, the other side's 1.5e-02"):
        turns.as_close("rows", exact * 1.04, exact * 0.985, exact)
    with pytest.raises(UserError):
        turns.as_close("rows", exact * torch.nan, exact, exact)


def test_the_ratio_is_the_median_of_turns(monkeypatch):
    monkeypatch.setattr(turns, "turns", lambda calls, repeats: {"dense": [4.0, 9.0, 6.0], "sparse": [2.0, 3.0, 1.0]})
    assert turns.compared({"dense": None, "sparse": None}, 3)["ratio"] == {"dense": 3.0}


def test_steps_and_growth_on_a_small_network(monkeypatch, tmp_path):
    steps = sparse_steps.training_steps("rn18", 4, 1, plain=True, width=0.125)
    assert list(steps["ratio"]) == ["plain", "lean"]
    monkeypatch.setattr(growth, "WIDTHS", (0.125,))
    monkeypatch.setattr(growth, "DENSITIES", (0.02, 0.2))
    monkeypatch.setattr(sparse, "ROWS", {"growth": lambda size, repeats: {"batch": 2, "points": growth.growth("rn18", 2, 1)}})
    out, picture = tmp_path / "sparse.json", tmp_path / "folder" / "sparse.png"
    assert sparse.main(["--out", str(out), "--plot", str(picture), "--batch", "2", "--repeats", "1"]) == 0
    points = json.loads(out.read_text())["rows"]["growth"]["points"]
    assert [point["density"] for point in points] == [0.02, 0.2]
    assert picture.stat().st_size > 1000


@pytest.mark.parametrize("make", [sparse_steps.rst, sparse_steps.finetune])
def test_other_methods_steps_are_compared(make):
    """Gradients of both sides are checked on the way: sides that differ would be an error."""
    result = sparse_steps.compare_steps(partial(make, "rn18", width=0.125), 4, 1)
    assert list(result["seconds"]) == ["lean", "sparse"]


def test_finetuning_moves_kept_weights_alone_and_needs_their_gradients_alone(monkeypatch):
    called = []
    plain = backward.gradient_of_some
    monkeypatch.setattr(backward, "gradient_of_some", lambda *args: called.append(1) or plain(*args))
    step = sparse_steps.finetune("rn18", "sparse", 0.25)
    masks = {name: conv.weight != 0 for name, conv in step.net.convs()}
    before = {name: conv.weight.detach().clone() for name, conv in step.net.convs()}
    step(*batch(4, torch.float32))
    assert called
    for name, conv in step.net.convs():
        assert torch.equal(conv.weight != 0, masks[name]), name
        assert not torch.equal(conv.weight, before[name]), name
