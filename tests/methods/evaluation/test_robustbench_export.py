"""A result in the form of RobustBench."""

from __future__ import annotations

import ast
import importlib.util
import json
from pathlib import Path

from methods.core import eval_result, eval_spec, sealed
from methods.evaluate import main
from methods.evaluation.robustbench_export import model_info
from tests.methods.evaluation.commands import refused


def robustbench_fields() -> set[str]:
    """The fields of RobustBench's ModelInfo, read from its source."""
    source = Path(importlib.util.find_spec("robustbench").origin).with_name("utils.py").read_text()
    info = next(n for n in ast.parse(source).body if isinstance(n, ast.ClassDef) and n.name == "ModelInfo")
    return {line.target.id for line in info.body if isinstance(line, ast.AnnAssign)}


def test_export_in_robustbench_form(tmp_path, capsys):
    spec = eval_spec.parse({"attack": "standard"})
    broken = ("none",) * 4506 + ("apgd-ce",) * 3224 + ("clean",) * 2270
    result = eval_result.Result(spec=spec, broken=broken, warnings=({"kind": "zero_gradient"},))
    source, out = tmp_path / "result.json", tmp_path / "info.json"
    sealed.write(source, result.to_json())
    assert main(["export", str(source), "--out", str(out), "--dataset", "cifar10", "--name", "A paper", "--architecture", "ResNet-34"]) == 0
    entry = json.loads(out.read_text())
    assert entry.keys() <= robustbench_fields()
    assert (entry["eps"], entry["clean_acc"], entry["autoattack_acc"]) == ("8/255", "77.30", "45.06")
    assert (entry["dataset"], entry["number_forward_passes"], entry["additional_data"]) == ("cifar10", 1, False)
    assert "zero_gradient" in entry["footnote"]
    assert model_info(result.to_json(), dataset="cifar10", name="", architecture="", reported=45)["reported"] == "45.00"

    few = eval_result.Result(spec=spec, broken=broken[:1000], warnings=())
    quick = eval_result.Result(spec=eval_spec.parse({"attack": "pgd"}), broken=("none",) * 10000, warnings=())
    cases = ((few.to_json(), "all 10000 test images"), (quick.to_json(), "'attack: pgd'"), ({}, "the key 'spec' is missing"))
    arguments = ["--out", str(tmp_path / "no.json"), "--dataset", "cifar10", "--name", "A", "--architecture", "B"]
    for bad, message in cases:
        sealed.write(source, bad)
        refused(["export", str(source), *arguments], message, tmp_path / "no.json", capsys)
