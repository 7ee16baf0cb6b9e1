"""From a cell to a Run: recipe <- dataset <- phase <- recipe's conditions <- table <- scale.

What a table says always wins over what a recipe says, so the conditions of a recipe are asked with the table's keys in
place, and the table's keys are put back on top of every override they trigger.
"""

import math
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from methods.core.closed import NotAllowed
from methods.core.datasets import DATASETS
from methods.core.errors import UserError
from methods.core.run_check import check_method, check_run, missing_keys
from methods.core.run_spec import Spec, drop, expand, get, matches, merge, normalise, put
from workflow.suite.planning.config import Scale, shown
from workflow.suite.planning.recipes import Recipe
from workflow.suite.planning.sources import choose, steps


def final_phase(recipe: Recipe, cell: Mapping[str, Any]) -> str | None:
    """The phase whose network a cell shows: what the table says, else what a condition picks, else the last one."""
    if not recipe.phases:
        return None
    chosen = _settle(recipe, merge(recipe.run, _dataset(cell)), cell).get("phase")
    return chosen or list(recipe.phases)[-1]


def resolve(
    recipe: Recipe, cell: Mapping[str, Any], *, scale: Scale, seed: int, root: Path, phase: str | None = None, where: str = "the cell"
) -> Spec:
    """The whole spec of one training phase (without its parent's id), for the keys a table gives in `cell`; `where` names that cell."""
    base = merge(recipe.run, _dataset(cell))
    wanted = dict(cell)
    ignored: tuple[str, ...] = ()
    if phase is not None:
        if phase not in recipe.phases:
            allowed = ", ".join(recipe.phases) or "none"
            raise UserError(f"{recipe.path}: RECIPE.phases: no phase is called '{phase}'; allowed: {allowed}")
        base = merge(base, recipe.phases[phase].run)
        ignored = recipe.phases[phase].ignores
        wanted = merge(wanted, {"phase": phase})
        for key in ignored:
            drop(wanted, key)
    spec = _settle(recipe, base, wanted)
    spec = merge(spec, {"method": recipe.method, "version": recipe.version, "seed": seed})
    for key in ignored:
        drop(spec, key)
    _at_scale(spec, recipe, scale, root)
    DATASETS[spec["dataset"]].side(spec["data"])  # refuses a size that the data set does not have
    if get(spec, "train.compute") == "fp32":
        drop(spec, "train.compute")  # the default has no name: it would name a Run twice
    if spec.get("eps") == 0 or get(spec, "attack.name") == "none":
        spec["attack"] = {"name": "none"}  # at radius 0 every attack returns the clean batch: one Run, not several
    run: Spec = normalise(spec)
    if missing := _missing(run, recipe, ignored):
        raise UserError(f"{where}: the Run has no {', '.join(missing)}; say it in the table, or in RECIPE.run of {recipe.path}")
    try:
        check_run(run)
        check_method(run, recipe.options, list(recipe.phases))
    except NotAllowed as refusal:
        raise UserError(f"{_origin(refusal.key, cell, recipe, scale, where)}: {refusal.reason}") from None
    return run


def _missing(run: Spec, recipe: Recipe, ignored: Collection[str]) -> list[str]:
    """Keys that a training of this Run would ask for in vain."""
    wanted = [key for key, needed in (("precision", "precision" not in ignored), ("init", recipe.reads_init)) if needed]
    return [*missing_keys(run), *(key for key in wanted if key not in run)]


def _origin(key: str, cell: Mapping[str, Any], recipe: Recipe, scale: Scale, where: str) -> str:
    """Who said what stands at a key: the scale has the last word, the table the one before, the recipe the first."""
    changes = [scale.rewrite, *(change for _, change in scale.when)]
    if any(get(expand(change), key) is not None for change in changes):
        return str(shown(scale.path))
    return where if get(cell, key) is not None else f"{recipe.path}: RECIPE"


def _dataset(cell: Mapping[str, Any]) -> Spec:
    dataset = cell.get("dataset")
    return {"eps": DATASETS[dataset].eps} if dataset else {}


def _settle(recipe: Recipe, base: Mapping[str, Any], wanted: Mapping[str, Any]) -> Spec:
    spec = merge(base, wanted)
    for condition, override in recipe.when:
        if matches(condition, spec):
            spec = merge(spec, override, wanted)
    return spec


def _at_scale(spec: Spec, recipe: Recipe, scale: Scale, root: Path) -> None:
    """Apply the scale in place: data source, rewritten keys, and what is counted in epochs or steps."""
    spec["data"] = {**spec.get("data", {}), "source": "full"}
    epochs, before = get(spec, "train.epochs"), steps(spec)
    put(spec, "data.source", choose(scale.data[spec["dataset"]], spec["dataset"], root))
    for key, change in scale.rewrite.items():
        _rewrite(spec, key, change)
    for condition, changes in scale.when:
        if matches(condition, spec):
            for key, change in changes.items():
                _rewrite(spec, key, change)
    now, after = get(spec, "train.epochs"), steps(spec)
    if epochs and now and now != epochs:
        share = (now, epochs)
        # A decay never comes before its share of the budget, a start never after it: one epoch is never all decay, and
        # what begins half-way still begins.
        _times(spec, "train.milestones", share, math.ceil)
        _times(spec, "train.warmup", share, round)
        for key in recipe.in_epochs:
            _times(spec, key, share, math.floor)
    if before and after and before != after:
        for key in recipe.in_steps:
            _times(spec, key, (after, before), lambda count: max(1, round(count)))


def _rewrite(spec: Spec, key: str, change: object) -> None:
    if not isinstance(change, Mapping):
        put(spec, key, change)
        return
    value = get(spec, key)
    if value is None:
        return
    scaled = value * change.get("times", 1)
    scaled = max(scaled, change.get("at_least", scaled))
    scaled = min(scaled, change.get("at_most", scaled))
    put(spec, key, math.floor(scaled + 0.5) if isinstance(value, int) else scaled)


def _times(spec: Spec, key: str, share: tuple[int, int], rounding: Callable[[float], int]) -> None:
    value = get(spec, key)
    if isinstance(value, list):
        put(spec, key, [rounding(item * share[0] / share[1]) for item in value])
    elif value is not None:
        put(spec, key, rounding(value * share[0] / share[1]))
