"""The suite repeats recorded steps of the official HYDRA and RST programs; deliberate mistakes are seen."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from baselines import hydra, rst
from methods.pruning import makers
from methods.training import optim
from methods.training.losses import forward_with_statistics, trades_loss
from tests.golden import replay
from tests.golden.check import Check
from tests.golden.kinds_hydra_rst import KINDS
from tests.golden.official import Official

HERE = Path(__file__).parent
FILES = {kind: next(HERE / f"{kind}{end}" for end in (".npz", ".json") if (HERE / f"{kind}{end}").is_file()) for kind in KINDS}


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def failed(kind: str) -> set[str]:
    return {check.quantity for check in KINDS[kind](FILES[kind]) if not check.passed}


@pytest.mark.parametrize("kind", KINDS)
def test_recording_is_repeated(kind):
    checks = replay.repeat(FILES[kind], replay.kind_of(FILES[kind], replay.kinds()))
    assert len(checks) > 10
    assert not [check for check in checks if not check.passed]


def test_free_run_of_rst_stays_on_its_recording():
    free = [check for check in KINDS["rst_steps"](FILES["rst_steps"]) if check.quantity.startswith("free:")]
    assert free
    assert max(check.deviation for check in free) < 1e-5


def step_with(*, logging: bool = True, last: bool = True, detach: bool = False):
    """HYDRA's step with one thing left out."""

    def step(net, x, y, attack, beta):
        clean, update = forward_with_statistics(net, x)
        if logging:
            update()
        adv = attack()
        update()
        adversarial = net(adv)
        if last:
            update()
        if detach:
            loss, logs = trades_loss(clean, adversarial, y, 0.0)
            return loss + trades_loss(clean.detach(), adversarial, y, beta)[0] - loss.detach(), logs
        return trades_loss(clean, adversarial, y, beta)

    return step


STATISTICS = {"number of statistics updates", "running statistics"}
MISTAKES = {
    "no logging forward": (step_with(logging=False), STATISTICS | {"share of other signs"}),
    "no second clean forward": (step_with(last=False), STATISTICS),
    "detached target": (step_with(detach=True), {"gradients", "tensors after the step"}),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake_in_the_hydra_step_is_seen(name, monkeypatch):
    step, seen = MISTAKES[name]
    monkeypatch.setattr(hydra, "trades_step", step)
    assert seen <= failed("hydra_prune_steps")


def test_frozen_norms_are_seen(monkeypatch):
    monkeypatch.setitem(hydra.RECIPE["phases"]["prune"]["run"]["options"], "train_norms", False)
    assert {"set of trained tensors", "set of gradients", "set of moved tensors"} <= failed("hydra_prune_steps")


def test_scores_by_magnitude_alone_are_seen(monkeypatch):
    monkeypatch.setattr(hydra, "scaled_scores", lambda weight: weight)
    assert "first scores" in failed("hydra_score_init")
    assert "scores taken over" in failed("hydra_prune_steps")


def test_missing_sign_of_the_scores_is_seen(monkeypatch):
    monkeypatch.setattr(makers, "select", lambda scores, kept: makers._Mask.apply(scores, kept))
    assert "gradients" in failed("rst_steps")


def test_missing_weight_decay_is_seen(monkeypatch):
    plain = optim.optimizer
    monkeypatch.setattr("tests.golden.official.optimizer", lambda params, train: plain(params, train | {"weight_decay": 0.0}))
    assert "recorded gradients in our optimiser" in failed("hydra_finetune_steps")


@pytest.mark.parametrize(
    "change, seen",
    [
        ({"bn": "eval"}, "number of statistics updates"),
        ({"start": "none"}, "attack losses"),
        ({"pick": "worst"}, "adversarial images"),
    ],
)
def test_other_attack_is_seen(change, seen, monkeypatch):
    run = rst.RECIPE["run"]
    monkeypatch.setattr(rst, "RECIPE", {"run": run | {"attack": run["attack"] | change}})
    assert seen in failed("rst_steps")


def test_names_of_an_official_network():
    official = Official(FILES["hydra_prune_steps"])
    official.arrays["blocks"] = torch.tensor([3, 4, 6, 3])
    names = {
        "conv1.weight": "maker.stem.weight",
        "bn1.running_mean": "net.stem_norm.running_mean",
        "layer3.1.conv2.popup_scores": "maker.blocks.8.convs.1.scores",
        "layer4.0.shortcut.0.scores": "maker.blocks.13.projection.scores",
        "layer4.0.shortcut.1.bias": "net.blocks.13.projection_norm.bias",
        "layer2.3.bn3.weight": "net.blocks.6.norms.2.weight",
        "linear.bias": "net.head.bias",
        "fc.scores": "maker.head.scores",
    }
    assert {name: official.tensor_name(name) for name in names} == names


def test_settings_are_read_as_they_were_typed():
    official = Official(FILES["hydra_prune_steps"])
    assert official.number("epsilon") == 0.031
    assert official.sparsity() == 0.8


def test_every_check_has_a_finite_tolerance_unless_free():
    checks: list[Check] = KINDS["hydra_finetune_steps"](FILES["hydra_finetune_steps"])
    assert {check.quantity for check in checks if check.tolerance == float("inf")} == {"free: loss"}
