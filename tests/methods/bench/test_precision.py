"""The bench of number formats measures what it says."""

import json

import pytest
import torch

from methods.bench import precision


@pytest.mark.parametrize("units", [True, False])
def test_both_formats_are_timed_by_turns(tmp_path, capsys, monkeypatch, units):
    seen = []
    plain = precision.step
    monkeypatch.setattr(precision, "step", lambda method, *rest: (seen.append(method.spec["train"]["compute"]), plain(method, *rest)))
    monkeypatch.setattr(precision, "has_units", lambda: units)
    monkeypatch.setattr("methods.training.precision.has_units", lambda: units)
    monkeypatch.setenv("SUITE_ENGINE", "auto")
    monkeypatch.setenv("SUITE_DEVICE", "cpu")
    words = ["--archs", "rn18", "--batch", "8", "--width", "0.0625", "--steps", "2", "--repeats", "2", "--out", str(tmp_path / "p.json")]
    assert precision.main(words) == 0
    assert seen == ["fp32", "bf16"] * 6
    record = json.loads((tmp_path / "p.json").read_text())
    assert record["imitated"] is not units
    steps = record["steps"]
    assert [(item["method"], item["ratio"]["n"]) for item in steps] == [("at", 2), ("binary_subnet", 2)]
    output = capsys.readouterr().out
    assert "a step in bfloat16 is" in output
    assert ("this CPU has no bfloat16 units and imitates them" in output) is not units


def test_the_steps_are_those_of_the_recipes():
    spec = precision.spec_of("at", "rn34", 64, 1.0, 10, "bf16")
    assert spec["attack"] == {"name": "pgd", "steps": 10, "step": 0.25, "start": "uniform", "pick": "worst", "bn": "train"}
    assert spec["train"]["lr"] == 0.1
    method = precision.prepared(precision.spec_of("binary_subnet", "rn18", 8, 0.0625, 2, "fp32"), torch.device("cpu"))
    assert method.spec["sparsity"] == 0.99
