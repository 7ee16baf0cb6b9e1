"""Small, complete run specs for tests, resolved by the suite itself from the recipes."""

from __future__ import annotations

from pathlib import Path

from methods.core import run_spec as spec
from workflow.suite.planning import recipes, resolve, toy
from workflow.suite.planning.config import ROOT


def small(method: str, *, dataset: str = "cifar10", phase: str | None = None, rewrite: dict | None = None, **cell) -> dict:
    """The spec of a method at toy size; `cell` are keys as a table gives them, `rewrite` dotted keys changed at the end."""
    recipe = recipes.load_all(ROOT)[method]
    scale = toy.scale(rewrite)
    keys = {"method": method, "dataset": dataset, **cell}
    phase = phase or resolve.final_phase(recipe, keys)
    return resolve.resolve(recipe, keys, scale=scale, seed=7, root=Path("no-such-data"), phase=phase)


def text(run: dict) -> str:
    return spec.canonical(run)
