"""Small, complete run specs for tests, resolved by the suite itself from the recipes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from methods.core import run_spec as spec
from workflow.suite.planning import recipes, resolve
from workflow.suite.planning.config import ROOT, load_scale

TINY = {"width": 0.0625, "data.train": 96, "data.val": 20, "train.epochs": 2, "train.batch": 24}
TINY |= {"attack.steps": {"at_most": 2}, "validate.steps": 2}  # not every attack has steps


def small(method: str, *, dataset: str = "cifar10", phase: str | None = None, rewrite: dict | None = None, **cell) -> dict:
    """The spec of a method at toy size; `cell` are keys as a table gives them, `rewrite` dotted keys changed at the end."""
    recipe = recipes.load_all(ROOT)[method]
    scale = replace(load_scale("demo"), rewrite=TINY | (rewrite or {}), when=())
    keys = {"method": method, "dataset": dataset, **cell}
    phase = phase or resolve.final_phase(recipe, keys)
    return resolve.resolve(recipe, keys, scale=scale, seed=7, root=Path("no-such-data"), phase=phase)


def text(run: dict) -> str:
    return spec.canonical(run)
