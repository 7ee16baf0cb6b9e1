"""Runs of a method at toy size, for its contract (methods/contract.py): one for each kind that the tables ask for, with its parents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from methods.core.run_spec import Spec, get, merge
from workflow.suite.planning import config, resolve
from workflow.suite.planning.config import Scale
from workflow.suite.planning.plan import Plan, cell_keys
from workflow.suite.planning.recipes import Recipe

TINY: dict[str, Any] = {"width": 0.0625, "data.train": 96, "data.val": 20, "train.epochs": 2, "train.batch": 24}
TINY |= {"attack.steps": {"at_most": 2}, "validate.steps": 2}  # not every attack has steps
SPARSITY = 0.9  # enough to matter, and not too much to train
SEED, NO_DATA = 7, Path("no-such-data")


def scale(rewrite: Mapping[str, Any] | None = None) -> Scale:
    """Scale demo, smaller."""
    return replace(config.load_scale("demo"), rewrite={**TINY, **(rewrite or {})}, when=())


def cases(recipe: Recipe, plan: Plan) -> dict[str, list[Spec]]:
    """Label -> a Run and its parents, nearest first. Phase, precision and attack make a kind; of a method in no table there is one."""
    chosen: dict[str, list[Spec]] = {}
    for keys in _keys(recipe, plan):
        phase: str | None = resolve.final_phase(recipe, keys)
        lineage = [phase]
        while phase is not None and (phase := recipe.phases[phase].parent) is not None:
            lineage.append(phase)
        specs = [_resolved(recipe, keys, phase) for phase in lineage]
        for place, spec in enumerate(specs):
            chosen.setdefault(_label(spec), specs[place:])
    return dict(sorted(chosen.items()))


def _keys(recipe: Recipe, plan: Plan) -> Iterator[Spec]:
    """What tables say of this method, on CIFAR-10 and attacked; what the recipe says where they say nothing."""
    mine = False
    for table in plan.tables.values():
        for row in table.rows:
            for column in table.columns:
                keys = cell_keys(table, row, column)
                if keys.get("method") == recipe.method and keys.get("dataset") == "cifar10" and keys.get("eps") != 0:
                    mine = True
                    if plan.cells[f"{table.name}.{row.id}.{column.id}"].runs:
                        yield keys
    if not mine:
        yield {"method": recipe.method, "dataset": "cifar10", **({} if "precision" in recipe.run else {"precision": "fp"})}


def _resolved(recipe: Recipe, keys: Spec, phase: str | None) -> Spec:
    small = merge(keys, {"arch": "rn18"}, {"sparsity": SPARSITY} if "sparsity" in keys or "sparsity" in recipe.run else {})
    return resolve.resolve(
        recipe, small, scale=scale(), seed=SEED, root=NO_DATA, phase=phase, where=f"method '{recipe.method}' at toy size"
    )


def _label(spec: Spec) -> str:
    parts = (spec["method"], spec.get("phase"), spec.get("precision"), get(spec, "attack.name"))
    return "-".join(str(part) for part in parts if part)
