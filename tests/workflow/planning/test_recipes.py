"""Recipes are read, checked, never imported."""

import pytest

from methods.core.errors import UserError
from tests.workflow.repository import OURS, PHASED, write_method
from workflow.suite.planning import config, recipes


def test_recipes_are_found_and_read_without_import(repository):
    methods = recipes.load_all(repository)
    assert sorted(methods) == ["binary_subnet", "hydra"]
    assert methods["hydra"].phases["quantised"].parent == "sparse"
    assert methods["hydra"].phases["quantised"].run == {"train": {"lr": 0.01}}
    assert methods["binary_subnet"].when[0][1] == {"attack": {"step": 0.5}, "train": {"epochs": 100}}


def test_every_recipe_of_the_project_is_sound():
    methods = recipes.load_all(config.ROOT)
    assert {"binary_subnet", "at"} <= set(methods)


def change(recipe, **keys):
    return {**recipe, **keys}


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        (change(OURS, colour="red"), r"baselines/mine.py: RECIPE: unknown key 'colour'; allowed: cites, deviations, in_epochs"),
        (change(OURS, run={"sparcity": 0.9}), r"RECIPE.run: unknown key 'sparcity'; allowed: arch, attack"),
        (change(OURS, run={"train": {"lrr": 1}}), r"RECIPE.run.train: unknown key 'lrr'; allowed: batch"),
        (change(OURS, run={"train.lrr": 1}), r"RECIPE.run.train: unknown key 'lrr'"),
        (change(OURS, run={"sparsity": 1.0}), r"RECIPE.run.sparsity: 1 is not allowed; allowed: a pruned fraction r in \[0, 1\)"),
        (change(OURS, run={"sparsity": -0.1}), r"RECIPE.run.sparsity"),
        (change(OURS, run={"p": 1.5}), r"RECIPE.run.p: 1.5 is not allowed; allowed: a number in \[0, 1\], or \"global\""),
        (change(OURS, run={"p": "local"}), r"RECIPE.run.p: 'local' is not allowed"),
        (change(OURS, run={"arch": "rn35"}), r"RECIPE.run.arch: 'rn35' is not allowed; allowed: rn18, rn34"),
        (change(OURS, run={"dataset": "mnist"}), r"'mnist' is not allowed; allowed: cifar10, cifar100, imagenet100"),
        (change(OURS, run={"eps": "8"}), r"RECIPE.run.eps: '8' is not allowed"),
        (change(OURS, when=[[{"datset": 1}, {}]]), r"RECIPE.when\[0\]: unknown key 'datset'"),
        (change(OURS, when=[{"dataset": "cifar10"}]), r"RECIPE.when\[0\].*a pair"),
        (change(OURS, in_epochs=["train.start"]), r"RECIPE.in_epochs: unknown key 'train.start'"),
        (change(PHASED, phases={"a": {"parent": "b"}}), r"RECIPE.phases.a.parent: 'b' is no phase before it; allowed: none"),
        (change(PHASED, phases={"a": {}, "b": {"parent": "b"}}), r"RECIPE.phases.b.parent: 'b' is no phase before it; allowed: a"),
        (change(PHASED, phases={"a": {"parent": "b"}, "b": {"parent": "a"}}), r"RECIPE.phases.a.parent: 'b' is no phase before it"),
        ({"name": "x"}, r"RECIPE: missing key 'version', 'cites'"),
        ([1], r"RECIPE is not a dict"),
    ],
)
def test_a_wrong_recipe_is_one_clear_message(repository, recipe, message):
    write_method(repository, "mine", recipe)
    with pytest.raises(UserError, match=message):
        recipes.load_all(repository)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("x = 1\n", "has no RECIPE"),
        ("import os\nRECIPE = {'version': os.sep}\n", r"RECIPE \(line 2\) is not a plain literal"),
        ("RECIPE = {\n", "cannot be read as Python"),
        ("RECIPE: dict\n", "has no RECIPE"),
        ("RECIPE = {[]: 1}\n", r"RECIPE \(line 1\) is not a plain literal"),
    ],
)
def test_a_broken_method_file_is_one_clear_message(repository, source, message):
    (repository / "baselines" / "mine.py").write_text(source)
    with pytest.raises(UserError, match=f"baselines/mine.py: .*{message}|baselines/mine.py: {message}"):
        recipes.load_all(repository)
