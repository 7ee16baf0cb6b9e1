"""ATMC's settings: phases, what rows share, what is refused."""

import pytest

from baselines.atmc import RECIPE, Atmc
from methods.core.errors import UserError
from methods.data.load import Data
from tests.baselines.atmc_toy import CPU, batches, chain, images, spec_of, step
from tests.specs import small, text
from workflow.suite.planning import recipes, resolve
from workflow.suite.planning.config import ROOT, load_scale


@pytest.fixture(scope="module")
def data() -> Data:
    return images()


def test_the_last_phase_follows_the_precision():
    chosen = {condition["precision"]: override["phase"] for condition, override in RECIPE["when"] if "precision" in condition}
    assert chosen == {"fp": "factorised", "binary": "quantised"}


def test_rows_share_what_does_not_depend_on_them():
    rows = [{"p": p, "precision": precision} for p in ("global", 0.1) for precision in ("fp", "binary")]
    rows.append({"p": 0.1, "precision": "binary", "options": {"quantiser": {"seeds": "sign_aware"}}})
    runs = {phase: {text(small("atmc", phase=phase, **row)) for row in rows} for phase in RECIPE["phases"]}
    assert {phase: len(ids) for phase, ids in runs.items() if phase != "quantised"} == {"dense": 1, "sparse": 2, "factorised": 2}
    binary = [row for row in rows if row["precision"] == "binary"]
    assert len({text(small("atmc", phase="quantised", **row)) for row in binary}) == 3


@pytest.mark.parametrize(
    ("dataset", "shared", "phases"),
    [
        (
            "cifar10",
            (128, 0.5, False, "pgd"),
            [(200, [80, 120, 150]), (200, [30, 60, 90, 120]), (200, [60, 80, 120]), (150, [60, 80, 120])],
        ),
        ("cifar100", (256, 0, True, "pgd"), [(200, [80, 120, 150]), (200, [30, 60, 90, 120]), (200, [60, 80, 120]), (150, [60, 80, 120])]),
        ("imagenet100", (256, 0.5, True, "fgsm_atta"), [(50, [20, 30, 38]), (50, [8, 15, 22, 30]), (50, [15, 20, 30]), (50, [20, 27, 40])]),
    ],
)
def test_settings_at_full_scale(dataset, shared, phases, tmp_path):
    recipe, scale = recipes.load_all(ROOT)["atmc"], load_scale("paper")
    for (phase, lr), (epochs, milestones) in zip(zip(RECIPE["phases"], (0.05, 0.01, 0.005, 0.005), strict=True), phases, strict=True):
        cell = {"method": "atmc", "dataset": dataset, "precision": "binary"}
        spec = resolve.resolve(recipe, cell, scale=scale, seed=1, root=tmp_path, phase=phase)
        settings = spec["train"]
        assert (settings["lr"], settings["epochs"], settings["milestones"]) == (lr, epochs, milestones)
        assert (settings["optimizer"], settings["momentum"], settings["weight_decay"]) == ("sgd", 0.9, 1e-4)
        assert (settings["batch"], spec["options"]["w_clean"], spec["normalize"], spec["attack"]["name"]) == shared


def test_every_phase_hands_over_its_best_epoch_and_needs_its_parent(data):
    assert Atmc.hands_over == "best"
    for phase in ("sparse", "factorised", "quantised"):
        with pytest.raises(
            UserError, match=f"phase '{phase}' of method 'atmc' starts from a run of phase '{RECIPE['phases'][phase]['parent']}'"
        ):
            Atmc(spec_of(phase), data, device=CPU)
    with pytest.raises(UserError, match="phase 'dense' of method 'atmc' starts from no other run"):
        Atmc(spec_of("dense"), data, device=CPU, parent={})


@pytest.mark.parametrize(
    ("key", "value", "message"), [("seeds", "lucky", "random, sign_aware"), ("mask", "some", "unfitted"), ("bits", 0, "at least 1")]
)
def test_wrong_options_are_named(data, key, value, message):
    with pytest.raises(UserError, match=message):
        method = chain(data, "quantised", **{f"options__quantiser__{key}": value, "options__quantiser__interval": 1})
        step(method, batches(data)[0], 2)


def test_an_unknown_phase_is_named(data):
    with pytest.raises(UserError, match="dense, sparse, factorised, quantised"):
        Atmc(spec_of("dense") | {"phase": "pruned"}, data, device=CPU)
