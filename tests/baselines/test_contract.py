"""What every method promises, asked of every file that defines one."""

import ast
from functools import cache
from pathlib import Path

import pytest
import torch

from methods.core.allocation import adaptive_counts, fixed_counts
from methods.data.load import load
from methods.networks.resnet import Net
from methods.training.course import Stopped
from methods.training.loop import train
from methods.training.method import Method
from methods.training.registry import load_method
from methods.training.resume import Resume
from tests.specs import small
from workflow.suite.planning import plan, recipes, resolve
from workflow.suite.planning.config import ROOT

CPU = torch.device("cpu")
RECIPES = recipes.load_all(ROOT)
TRAINED = sorted(name for name in RECIPES if name != "zoo")  # zoo imports networks; it has tests of its own


def variants(method: str) -> list[dict]:
    """The precisions and phases of a method that the tables ask for, at toy size on the shipped sample."""
    asked = set()
    for run in demo_plan().runs.values():
        if run.spec["method"] == method and run.spec["dataset"] == "cifar10" and run.spec["eps"] != 0:
            asked.add((run.spec.get("phase"), run.spec.get("precision"), run.spec["attack"]["name"]))
    return [{"phase": p, "precision": q, "attack": {"name": a}} for p, q, a in sorted(asked, key=str)]


@cache
def demo_plan() -> plan.Plan:
    return plan.load("demo", data_root=Path("no-such-data"))


def label(method: str, variant: dict) -> str:
    return "-".join(str(part) for part in (method, variant["phase"], variant["precision"], variant["attack"]["name"]) if part)


CASES = [pytest.param(method, variant, id=label(method, variant)) for method in TRAINED for variant in variants(method)]


def toy(method: str, variant: dict, **rewrite) -> dict:
    """A spec of this variant: rn18, sparse enough to matter, dense enough to train."""
    keys = {"arch": "rn18", "attack": variant["attack"]}
    if variant["precision"]:
        keys["precision"] = variant["precision"]
    if (method, variant["precision"]) == ("binary_subnet", "fp"):  # the tables' Signed KC columns
        keys["init"] = {"weights": "signed_kc", "scores": "fan_uniform", "a": 1}
    if "sparsity" in RECIPES[method].run:
        keys["sparsity"] = 0.9
    return small(method, phase=variant["phase"], rewrite={"train.epochs": 1, **rewrite}, **keys)


@cache
def sample(train_images: int = 96):
    return load("cifar10", source="sample", train=train_images, val=20)


def parent_of(method: str, spec: dict, data) -> dict[str, torch.Tensor] | None:
    """What an untrained run of the parent phase would hand over."""
    phase = spec.get("phase")
    name = RECIPES[method].phases[phase].parent if phase else None
    if name is None:
        return None
    keys = {k: spec[k] for k in ("arch", "lbn", "precision", "sparsity", "p") if k in spec}
    parent = small(method, phase=name, dataset=spec["dataset"], rewrite={"width": spec["width"]}, **keys)
    parent["data"] = spec["data"]
    built = load_method(method)(parent, data, device=CPU, parent=parent_of(method, parent, data))
    return {name: t.clone() for name, t in built.tensors().items()}


def make(method: str, spec: dict, data=None) -> Method:
    data = data or sample()
    return load_method(method)(spec, data, device=CPU, parent=parent_of(method, spec, data))


class After:
    """A stop signal that comes after a number of questions."""

    def __init__(self, questions: int):
        self.left = questions

    def __call__(self) -> bool:
        self.left -= 1
        return self.left < 0


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
    for run in demo_plan().runs.values():
        spec = run.spec
        key = tuple(str(spec.get(k)) for k in ("method", "phase", "dataset", "arch", "lbn", "precision", "p"))
        specs.setdefault(key, spec)
    return [pytest.param(spec, id="-".join(k for k in key if k != "None")) for key, spec in sorted(specs.items()) if key[0] != "zoo"]


@pytest.mark.parametrize("spec", requests())
def test_builds_for_everything_the_tables_ask(spec):
    spec = {**spec, "data": {"source": "stand-in"}}
    data = load(spec["dataset"], source="stand-in", train=2, val=1)
    method = make(spec["method"], spec, data)
    assert isinstance(method.net, Net)
    method.check_start()
    with torch.no_grad():
        logits = method.net.train()(torch.rand(2, *data.shape))  # batch statistics: an untrained +-1 network has no others yet
    assert logits.shape == (2, data.classes)
    assert torch.isfinite(logits).all()


@pytest.mark.parametrize(("method", "variant"), CASES)
def test_three_steps_move_what_is_trained_and_nothing_else(method, variant, tmp_path):
    spec = toy(method, variant)
    built = make(method, spec)
    trained = {id(p) for p in built.trainables()}
    parameters = {f"net.{n}": p for n, p in built.net.named_parameters()}
    made = {f"net.{name}.weight" for name in built.realisation.makers}
    for layer, maker in built.realisation.makers.items():
        parameters |= {f"maker.{layer}.{n}": p for n, p in maker.named_parameters()}
    before = {name: p.detach().clone() for name, p in parameters.items()}
    statistics = [n.running_mean.clone() for n in built.net.norms()]
    with pytest.raises(Stopped):
        train(built, sample(), resume=Resume(tmp_path / "state", "x"), stop=After(2), log=lambda _: None)
    moved = {name for name, p in parameters.items() if not torch.equal(p, before[name])}
    expected = {name for name, p in parameters.items() if id(p) in trained}
    # Effective weights follow their makers.
    assert moved - made <= expected, f"moved though frozen: {sorted(moved - made - expected)[:5]}"
    # By layer: a projection may put one factor of a layer back to where it was, and a dead layer's gradient is zero.
    layers = {name.rpartition(".")[0] for name in expected}
    still = layers - {name.rpartition(".")[0] for name in moved}
    assert len(still) <= 0.2 * len(layers), f"stood still: {sorted(still)[:5]}"
    assert all(not torch.equal(n.running_mean, s) for n, s in zip(built.net.norms(), statistics, strict=True))


@pytest.mark.parametrize(("method", "variant"), CASES)
def test_interrupted_and_resumed_is_identical(method, variant, tmp_path):
    """A fresh object that loads the state saved in mid-epoch ends like the one that was never stopped."""
    spec = toy(method, variant, **{"train.epochs": 2})
    whole = train(make(method, spec), sample(), resume=Resume(tmp_path / "whole", "x"), log=lambda _: None)
    resume = Resume(tmp_path / "cut", "x")
    with pytest.raises(Stopped):
        train(make(method, spec), sample(), resume=resume, stop=After(5), log=lambda _: None)
    resumed = train(make(method, spec), sample(), resume=resume, log=lambda _: None)
    assert resumed.history == whole.history
    for name, tensor in whole.best["tensors"].items():
        assert torch.equal(tensor, resumed.best["tensors"][name]), name
    for name, tensor in whole.handed_over.items():
        assert torch.equal(tensor, resumed.handed_over[name]), name


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


@pytest.mark.parametrize(("method", "variant"), CASES)
def test_the_deployed_network_is_plain_and_as_declared(method, variant, tmp_path):
    spec = toy(method, variant)
    built = make(method, spec)
    outcome = train(built, sample(), resume=Resume(tmp_path / "state", "x"), log=lambda _: None)
    built.check_declared(outcome.best["tensors"], outcome.best["report"])
    net, report = fresh_copy(built), outcome.best["report"]
    net.load_state_dict(outcome.best["tensors"])
    weights = [conv.weight for _, conv in net.convs()]
    nonzero = sum(int(w.count_nonzero()) for w in weights)
    assert report["nonzero"] == nonzero
    declared = declared_nonzeros(built, report)
    if declared is not None:
        assert nonzero == declared
    if spec.get("precision") == "binary" and method != "atmc":
        values = torch.cat([w.flatten() for w in weights]).unique().tolist()
        assert set(values) <= {-1.0, 0.0, 1.0}
        assert (0.0 in values) == (declared is not None or method == "flyingbird"), "pruned weights are zero, others are not"
    with torch.no_grad():
        assert torch.isfinite(net.eval()(torch.rand(2, 3, 32, 32))).all()


def fresh_copy(built: Method) -> Net:
    from methods.networks.resnet import build

    return build(**built.net.arguments)


def test_final_phases_are_those_that_the_tables_show():
    for name, recipe in RECIPES.items():
        for precision in ("fp", "binary"):
            phase = resolve.final_phase(recipe, {"method": name, "dataset": "cifar10", "precision": precision})
            assert phase is None or phase in recipe.phases
