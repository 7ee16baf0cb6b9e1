"""What every method promises (methods/contract.py), asked of every file that defines one, and what these methods promise besides."""

import ast
from pathlib import Path

import pytest
import torch

from methods import contract
from methods.core.allocation import adaptive_counts, fixed_counts
from methods.data.load import load
from methods.networks.resnet import Net
from methods.training.method import Method
from methods.training.registry import load_method
from workflow.suite.planning import plan, recipes, resolve, toy
from workflow.suite.planning.config import ROOT

RECIPES = recipes.load_all(ROOT)
TRAINED = sorted(name for name in RECIPES if name != "zoo")  # zoo imports networks; it has tests of its own
DEMO = plan.load("demo", data_root=Path("no-such-data"))
CASES = [contract.Case(label, specs) for name in TRAINED for label, specs in toy.cases(RECIPES[name], DEMO).items()]
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.label)


def parent_of(method: str, spec: dict, data) -> dict[str, torch.Tensor] | None:
    """What an untrained run of the parent phase would hand over."""
    name = RECIPES[method].phases[spec["phase"]].parent if "phase" in spec else None
    if name is None:
        return None
    keys = {key: spec[key] for key in ("method", "dataset", "arch", "lbn", "precision", "sparsity", "p") if key in spec}
    small = toy.scale({"width": spec["width"]})
    parent = resolve.resolve(RECIPES[method], keys, scale=small, seed=7, root=Path("no-such-data"), phase=name)
    parent["data"] = spec["data"]
    built = load_method(method)(parent, data, device=contract.CPU, parent=parent_of(method, parent, data))
    return {name: tensor.clone() for name, tensor in built.tensors().items()}


@pytest.mark.parametrize("path", [r.path for r in RECIPES.values()], ids=str)
def test_a_method_stands_by_itself(path):
    """It imports nothing of the project but the methods library: no sibling, no workflow."""
    path = ROOT / path
    for node in ast.walk(ast.parse(path.read_text())):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        for name in names:
            assert name.split(".")[0] not in ("baselines", "workflow", "tests"), f"{path.name} imports {name}"


def requests() -> list:
    """One spec for each network that the tables ask a method to build."""
    specs = {}
    for run in DEMO.runs.values():
        spec = run.spec
        key = tuple(str(spec.get(k)) for k in ("method", "phase", "dataset", "arch", "lbn", "precision", "p"))
        specs.setdefault(key, spec)
    return [pytest.param(spec, id="-".join(k for k in key if k != "None")) for key, spec in sorted(specs.items()) if key[0] != "zoo"]


@pytest.mark.parametrize("spec", requests())
def test_builds_for_everything_the_tables_ask(spec):
    spec = {**spec, "data": {"source": "stand-in"}}
    data = load(spec["dataset"], source="stand-in", train=2, val=1)
    method = load_method(spec["method"])(spec, data, device=contract.CPU, parent=parent_of(spec["method"], spec, data))
    assert isinstance(method.net, Net)
    method.check_start()
    with torch.no_grad():
        logits = method.net.train()(torch.rand(2, *data.shape))  # batch statistics: an untrained +-1 network has no others yet
    assert logits.shape == (2, data.classes)
    assert torch.isfinite(logits).all()


@every_case
def test_it_builds(case):
    contract.builds(case)


@every_case
def test_three_steps_move_what_is_trained_and_nothing_else(case):
    contract.moves(case)


@every_case
def test_interrupted_and_resumed_is_identical(case):
    """A fresh object that loads the state saved in mid-epoch ends like the one that was never stopped."""
    contract.resumes(case)


def declared_nonzeros(built: Method, report: dict) -> int | None:
    """How many convolution weights the spec says are not zero; None where the method reports it instead."""
    spec, sizes = built.spec, [conv.weight.numel() for _, conv in built.net.convs()]
    if "sparsity" not in spec or spec.get("phase") in ("pretrain", "dense"):
        return None
    kind = spec["method"]
    if kind == "binary_subnet":
        return sum(adaptive_counts(sizes, spec["sparsity"], spec["p"]))
    if kind in ("hydra", "rst"):
        fixed = spec["p"] == 1
        return sum(fixed_counts(sizes, spec["sparsity"]) if fixed else adaptive_counts(sizes, spec["sparsity"], spec["p"]))
    if kind == "bcs":
        return int(built.keep * sum(sizes))
    return None


@every_case
def test_the_deployed_network_is_plain_and_as_declared(case):
    built, net, report = contract.deploys(case)
    weights = [conv.weight for _, conv in net.convs()]
    declared = declared_nonzeros(built, report)
    if declared is not None:
        assert sum(int(w.count_nonzero()) for w in weights) == declared
    method = case.spec["method"]
    if case.spec.get("precision") == "binary" and method != "atmc":
        values = torch.cat([w.flatten() for w in weights]).unique().tolist()
        assert set(values) <= {-1.0, 0.0, 1.0}
        assert (0.0 in values) == (declared is not None or method == "flyingbird"), "pruned weights are zero, others are not"


def test_every_method_has_cases():
    assert {case.spec["method"] for case in CASES} == set(TRAINED)


def test_final_phases_are_those_that_the_tables_show():
    for name, recipe in RECIPES.items():
        for precision in ("fp", "binary"):
            phase = resolve.final_phase(recipe, {"method": name, "dataset": "cifar10", "precision": precision})
            assert phase is None or phase in recipe.phases
