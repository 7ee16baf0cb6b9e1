"""From a cell to a Run: who wins over whom, phases, scales."""

import dataclasses
from pathlib import Path

import pytest

from methods.core.errors import UserError
from tests.workflow.repository import OURS, PGD, write_method
from workflow.suite.planning import config, recipes, resolve, sources

PAPER = config.load_scale("paper")
CIFAR = {"dataset": "cifar10", "precision": "binary"}


@pytest.fixture
def run(repository):
    methods = recipes.load_all(repository)

    def resolved(method, cell, scale=PAPER, phase=None, seed=1234):
        return resolve.resolve(methods[method], cell, scale=scale, seed=seed, root=Path("none"), phase=phase)

    resolved.recipes = methods
    return resolved


def scaled(**keys):
    return dataclasses.replace(PAPER, **keys)


def test_dataset_gives_the_radius_and_the_table_can_change_it(run):
    assert run("binary_subnet", CIFAR)["eps"] == "8/255"
    assert run("binary_subnet", {**CIFAR, "dataset": "cifar100"})["eps"] == "4/255"
    assert run("binary_subnet", {**CIFAR, "dataset": "imagenet100"})["eps"] == "2/255"
    assert run("binary_subnet", {**CIFAR, "eps": 0})["eps"] == 0


def test_what_a_table_says_wins_over_a_condition(run):
    fast = run("binary_subnet", {**CIFAR, "attack": {"name": "fgsm_atta"}})
    assert fast["attack"] == {"name": "fgsm_atta", "step": 0.5}
    assert fast["train"]["epochs"] == 100
    longer = run("binary_subnet", {**CIFAR, "attack": {"name": "fgsm_atta"}, "train": {"epochs": 7}})
    assert longer["train"]["epochs"] == 7
    assert longer["attack"]["step"] == 0.5


def test_conditions_apply_in_order_and_only_where_they_match(run):
    assert run("binary_subnet", CIFAR)["attack"] == PGD
    big = run("binary_subnet", {**CIFAR, "dataset": "imagenet100"})
    assert big["attack"] == {"name": "fgsm_atta", "step": 0.5}
    assert (big["train"]["warmup"], big["train"]["epochs"]) == (5, 400)  # the attack was another when the first one was asked


def test_without_a_radius_every_attack_is_the_same_run(run):
    plain = run("binary_subnet", {**CIFAR, "eps": 0})
    assert plain["attack"] == {"name": "none"}
    assert run("binary_subnet", {**CIFAR, "eps": 0, "attack": {"steps": 3}}) == plain


def test_null_drops_a_key(run):
    assert "p" not in run("binary_subnet", {**CIFAR, "p": None})


def test_phase_is_the_last_or_what_a_condition_picks(run):
    hydra = run.recipes["hydra"]
    assert resolve.final_phase(hydra, {"precision": "binary", "dataset": "cifar10"}) == "quantised"
    assert resolve.final_phase(hydra, {"precision": "fp", "dataset": "cifar10"}) == "sparse"
    assert resolve.final_phase(hydra, {"precision": "fp", "dataset": "cifar10", "phase": "dense"}) == "dense"
    assert resolve.final_phase(run.recipes["binary_subnet"], CIFAR) is None


def test_a_phase_has_its_settings_and_forgets_what_it_ignores(run):
    cell = {"dataset": "cifar10", "precision": "fp", "arch": "rn18", "p": 0.1}
    dense, sparse = run("hydra", cell, phase="dense"), run("hydra", cell, phase="sparse")
    assert "sparsity" not in dense
    assert "p" not in dense
    assert dense == run("hydra", {**cell, "p": 1.0}, phase="dense")
    assert (dense["train"]["epochs"], sparse["train"]["epochs"]) == (100, 20)
    assert (dense["phase"], sparse["phase"]) == ("dense", "sparse")
    assert sparse["options"] == {"seen": True}
    assert "options" not in dense
    with pytest.raises(UserError, match="no phase is called 'final'; allowed: dense, sparse, quantised"):
        run("hydra", cell, phase="final")


def test_a_phase_may_ignore_what_other_runs_must_say(run):
    """ATMC's dense phase is one network for the full-precision and for the binary column."""
    hydra = run.recipes["hydra"]
    dense = dataclasses.replace(hydra.phases["dense"], ignores=("sparsity", "p", "precision"))
    run.recipes["hydra"] = dataclasses.replace(hydra, phases={**hydra.phases, "dense": dense})
    cells = [{"dataset": "cifar10", "precision": precision, "arch": "rn18"} for precision in ("fp", "binary")]
    assert run("hydra", cells[0], phase="dense") == run("hydra", cells[1], phase="dense")
    assert "precision" not in run("hydra", cells[0], phase="dense")


def test_a_run_that_nobody_completes_is_refused(run):
    with pytest.raises(UserError, match="the cell: the Run has no arch; say it in the table, or in RECIPE.run of baselines/hydra.py"):
        run("hydra", {"dataset": "cifar10", "precision": "fp"}, phase="dense")


@pytest.mark.parametrize("key", ["attack", "precision", "init"])
def test_a_recipe_without_a_key_that_its_class_reads(repository, key):
    text = "class Mine(Method):\n    pass\n\n\nMETHOD = Mine\n"
    recipe = {**OURS, "run": {name: value for name, value in OURS["run"].items() if name != key}}
    write_method(repository, "rst", recipe, text)
    mine = recipes.load_all(repository)["rst"]
    with pytest.raises(UserError, match=f"the Run has no {key}; say it in the table, or in RECIPE.run of baselines/rst.py"):
        resolve.resolve(mine, {"dataset": "cifar10"}, scale=scaled(), seed=0, root=Path("none"))


def test_a_class_that_draws_its_own_weights_needs_no_init(repository):
    text = "class Mine(Method):\n    def initialise(self):\n        pass\n\n\nMETHOD = Mine\n"
    recipe = {**OURS, "run": {name: value for name, value in OURS["run"].items() if name != "init"}}
    write_method(repository, "rst", recipe, text)
    mine = recipes.load_all(repository)["rst"]
    assert "init" not in resolve.resolve(mine, {"dataset": "cifar10"}, scale=scaled(), seed=0, root=Path("none"))


def test_rewrites(run):
    rewrite = {"width": 0.25, "train.batch": {"at_most": 128}, "train.epochs": {"times": 0.025, "at_least": 2}}
    spec = run("binary_subnet", CIFAR, scaled(rewrite=rewrite))
    assert (spec["width"], spec["train"]["batch"], spec["train"]["epochs"]) == (0.25, 128, 10)
    short = run("hydra", {**CIFAR, "arch": "rn18"}, scaled(rewrite=rewrite), phase="sparse")
    assert (short["train"]["batch"], short["train"]["epochs"]) == (128, 2)
    absent = run("binary_subnet", CIFAR, scaled(rewrite={"train.warmup": {"at_most": 3}}))
    assert "warmup" not in absent["train"]


def test_conditional_rewrites_come_after_the_common_ones(run):
    scale = scaled(rewrite={"data.train": 256}, when=(({"dataset": "cifar10"}, {"data.train": 64}),))
    assert run("binary_subnet", CIFAR, scale)["data"]["train"] == 64
    assert run("binary_subnet", {**CIFAR, "dataset": "cifar100"}, scale)["data"]["train"] == 256


@pytest.mark.parametrize(("times", "epochs"), [(0.0037, 1), (0.00385, 2), (0.00375, 2)])
def test_a_scaled_count_is_rounded(run, times, epochs):
    """400 epochs: 1.48, 1.54, and a half, which goes up."""
    assert run("binary_subnet", CIFAR, scaled(rewrite={"train.epochs": {"times": times}}))["train"]["epochs"] == epochs


def test_what_is_counted_in_epochs_follows_the_budget(run):
    ten = run("binary_subnet", CIFAR, scaled(rewrite={"train.epochs": 10}))
    assert ten["train"]["milestones"] == [5, 8]  # 7.5: a decay never comes early
    assert ten["options"]["start"] == 2  # 2.5: a start never comes late
    one = run("binary_subnet", {**CIFAR, "dataset": "imagenet100"}, scaled(rewrite={"train.epochs": 1}))
    assert one["train"]["milestones"] == [1, 1]  # never reached
    assert one["train"]["warmup"] == 0
    same = run("binary_subnet", CIFAR)
    assert (same["train"]["milestones"], same["options"]) == ([200, 300], {"start": 100, "every": 900})


def test_what_is_counted_in_steps_follows_the_steps(run):
    before = 400 * 192  # 49000 images in batches of 256
    scale = scaled(rewrite={"train.epochs": 10, "train.batch": 128, "data.train": 5000})
    assert run("binary_subnet", CIFAR, scale)["options"]["every"] == round(900 * 10 * 40 / before)
    tiny = scaled(rewrite={"train.epochs": 1, "data.train": 32})
    assert run("binary_subnet", CIFAR, tiny)["options"]["every"] == 1


@pytest.mark.parametrize(
    ("name", "trace"),
    [("cifar10", "cifar-10-batches-py"), ("cifar100", "cifar-100-python.tar.gz"), ("imagenet100", "imagenet/train/n01440764")],
)
def test_the_first_source_at_hand_is_taken(tmp_path, name, trace):
    assert sources.choose(["full", "stand-in"], name, tmp_path) == "stand-in"
    assert sources.choose("full", name, tmp_path) == "full"
    (tmp_path / trace).mkdir(parents=True)
    assert sources.choose(["full", "stand-in"], name, tmp_path) == "full"


@pytest.mark.parametrize(
    ("method", "cell", "message"),
    [
        ("binary_subnet", {"attack": {"stepz": 1}}, "row 'r': attack: unknown key 'stepz'; allowed: bn, name, pick"),
        ("binary_subnet", {"options": {"no_such": 1}}, "row 'r': options: unknown key 'no_such'; allowed: every, start"),
        ("binary_subnet", {"options": {"start": "late"}}, "row 'r': options.start: 'late' is not allowed; allowed: a number"),
        (
            "binary_subnet",
            {"attack": {"name": "fgsm_atta", "steps": 3}},
            "row 'r': attack: unknown key 'steps'; allowed: aligned, name, step",
        ),
        ("binary_subnet", {"phase": "dense"}, "row 'r': phase: 'dense' is not allowed; allowed: none, since the method has no phases"),
        ("binary_subnet", {"train": {"milestones": None}}, "row 'r': train: 'schedule: steps' needs 'milestones'"),
    ],
)
def test_what_no_run_can_hold_is_refused_with_who_said_it(run, method, cell, message):
    recipe = run.recipes[method]
    with pytest.raises(UserError, match=message):
        resolve.resolve(recipe, {**CIFAR, **cell}, scale=PAPER, seed=1, root=Path("none"), where="row 'r'")


def test_a_scale_that_rewrites_what_an_attack_does_not_have_is_named(run):
    tiny = scaled(rewrite={"attack.steps": 2})
    assert run("binary_subnet", CIFAR, tiny)["attack"]["steps"] == 2
    with pytest.raises(UserError, match="workflow/config/scales/paper.yaml: attack: unknown key 'steps'; allowed: aligned, name, step"):
        run("binary_subnet", {**CIFAR, "attack": {"name": "fgsm_atta"}}, tiny)
