"""Small networks of every method, trained for an epoch: for tests that need real ones."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from methods.data.load import load
from methods.networks.resnet import Net, build
from methods.training.loop import train
from methods.training.registry import load_method
from methods.training.resume import Resume
from tests.specs import small
from workflow.suite.planning import recipes
from workflow.suite.planning.config import ROOT


@cache
def trained(method: str, **cell) -> tuple[Net, dict]:
    """The network that a method deploys after an epoch on 48 images (each phase), in eval mode, and the spec of its Run."""
    recipe, data = recipes.load_all(ROOT)[method], load("cifar10", source="sample", train=48, val=8)
    asked = {"arch": "rn18", **({"sparsity": 0.9} if "sparsity" in recipe.run else {}), **cell}
    last = small(method, **asked)
    phases = [last.get("phase")]
    while phases[0] is not None and (before := recipe.phases[phases[0]].parent) is not None:
        phases.insert(0, before)
    parent: dict[str, torch.Tensor] | None = None
    for phase in phases:
        spec = small(method, phase=phase, rewrite={"train.epochs": 1}, **asked)
        made = load_method(method)(spec, data, device=torch.device("cpu"), parent=parent)
        with TemporaryDirectory() as folder:
            outcome = train(made, data, resume=Resume(Path(folder), "x"), log=lambda _: None)
        parent = outcome.handed_over
    net = build(**made.net.arguments)  # in the memory format that a file is read into: the other sums in another order
    net.load_state_dict(outcome.best["tensors"])
    return net.eval(), spec
