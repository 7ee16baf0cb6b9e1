"""Every method as the tables ask for it, at toy size on the shipped sample."""

from functools import cache
from pathlib import Path

import pytest
import torch

from methods.data.load import load
from methods.training.method import Method
from methods.training.registry import load_method
from tests.specs import small
from workflow.suite.planning import plan, recipes
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
