"""The bench of number formats measures what it says."""

import json

import torch

from methods.bench import precision


def test_both_formats_are_timed_by_turns(tmp_path, capsys, monkeypatch):
    seen = []
    plain = precision.step
    monkeypatch.setattr(precision, "step", lambda method, *rest: (seen.append(method.spec["train"]["compute"]), plain(method, *rest)))
    monkeypatch.setattr(precision, "require_units", lambda train, device: None)
    monkeypatch.setenv("SUITE_ENGINE", "auto")
    words = ["--archs", "rn18", "--batch", "8", "--width", "0.0625", "--steps", "2", "--repeats", "2", "--out", str(tmp_path / "p.json")]
    assert precision.main(words) == 0
    assert seen == ["fp32", "bf16"] * 6
    steps = json.loads((tmp_path / "p.json").read_text())["steps"]
    assert [(item["method"], item["ratio"]["n"]) for item in steps] == [("at", 2), ("binary_subnet", 2)]
    assert "a step in bfloat16 is" in capsys.readouterr().out


def test_a_machine_without_units_is_told(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("methods.training.precision.has_units", lambda: False)
    monkeypatch.setenv("SUITE_ENGINE", "auto")
    monkeypatch.setenv("SUITE_DEVICE", "cpu")
    assert precision.main(["--out", str(tmp_path / "p.json")]) == 2
    assert "has no bfloat16 units" in capsys.readouterr().err
    assert not (tmp_path / "p.json").exists()


def test_the_steps_are_those_of_the_recipes():
    spec = precision.spec_of("at", "rn34", 64, 1.0, 10, "bf16")
    assert spec["attack"] == {"name": "pgd", "steps": 10, "step": 0.25, "start": "uniform", "pick": "worst", "bn": "train"}
    assert spec["train"]["lr"] == 0.1
    method = precision.prepared(precision.spec_of("binary_subnet", "rn18", 8, 0.0625, 2, "fp32"), torch.device("cpu"))
    assert method.spec["sparsity"] == 0.99
