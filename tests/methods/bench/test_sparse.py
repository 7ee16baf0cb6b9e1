"""The bench of the sparse engine compares only sides whose answers agree."""

import json

import pytest
import torch

from methods.bench import sparse
from methods.core.errors import UserError


def test_sides_that_differ_have_no_ratio():
    rows = torch.rand(4, 3)
    sparse.agree("rows", rows * (1 + 1e-5), rows)
    with pytest.raises(UserError, match="no ratio is taken"):
        sparse.agree("rows", rows * 1.1, rows)
    with pytest.raises(UserError):
        sparse.agree("rows", rows * torch.nan, rows)


def test_the_ratio_is_the_median_of_turns(monkeypatch):
    monkeypatch.setattr(sparse, "turns", lambda calls, repeats: {"dense": [4.0, 9.0, 6.0], "sparse": [2.0, 3.0, 1.0]})
    assert sparse.compared({"dense": None, "sparse": None}, 3)["ratio"] == {"dense": 3.0}


def test_steps_and_growth_on_a_small_network(monkeypatch, tmp_path):
    steps = sparse.training_steps("rn18", 4, 1, plain=True, width=0.125)
    assert list(steps["ratio"]) == ["plain", "lean"]
    monkeypatch.setattr(sparse, "WIDTHS", (0.125,))
    monkeypatch.setattr(sparse, "DENSITIES", (0.02, 0.2))
    monkeypatch.setattr(sparse, "ROWS", {"growth": lambda size, repeats: {"points": sparse.growth("rn18", 2, 1)}})
    out, picture = tmp_path / "sparse.json", tmp_path / "folder" / "sparse.png"
    assert sparse.main(["--out", str(out), "--plot", str(picture), "--batch", "2", "--repeats", "1"]) == 0
    points = json.loads(out.read_text())["rows"]["growth"]["points"]
    assert [point["density"] for point in points] == [0.02, 0.2]
    assert picture.stat().st_size > 1000
