"""Whole trainings, several epochs with their schedule, selection and hand-over, equal a plain loop bit for bit."""

import copy

import pytest
import torch

from methods.core.errors import UserError
from methods.training import loop
from methods.training.loop import train
from methods.training.resume import Resume
from tests.baselines.toy_runs import CASES, make, sample, toy
from tests.methods.training import plain

# Uneven batches of training (16, 16, 5) and validation (16, 4).
SIZE = {"train.epochs": 3, "train.batch": 16, "data.train": 37}
PLAIN = {"phase": None, "precision": "binary", "attack": {"name": "pgd"}}
FLYING = {"phase": None, "precision": "fp", "attack": {"name": "pgd"}}
MORE = [
    pytest.param("binary_subnet", PLAIN, {"train.warmup": 2, "train.epochs": 4}, id="warm-up"),
    pytest.param("binary_subnet", PLAIN, {"p": "global"}, id="global"),
    pytest.param("flyingbird", FLYING, {"options.plus": True, "options.plus_start": 1, "options.update_every": [1, 2]}, id="plus"),
    pytest.param("atmc", {"phase": "quantised", "precision": "binary", "attack": {"name": "pgd"}}, {"p": 0.1}, id="atmc-per-layer"),
]
HANDS_OVER = {("hydra", "pretrain"): "last", ("hydra", "prune"): "last"}


def hands_over(method: str, phase: str | None) -> str | None:
    """As the descriptions say: ATMC goes on from the best epoch, HYDRA from the last; nothing follows the others."""
    return "best" if method == "atmc" else HANDS_OVER.get((method, phase))


def data():
    return sample(37)


def trained(built, tmp_path):
    return train(built, data(), resume=Resume(tmp_path / "state", "x"), log=lambda _: None)


def assert_equal(ours: dict, expected: dict) -> None:
    assert ours.keys() == expected.keys()
    for name, tensor in expected.items():
        assert torch.equal(ours[name], tensor), name


@pytest.mark.parametrize(("method", "variant", "more"), [pytest.param(*c.values, {}, id=c.id) for c in CASES] + MORE)
def test_a_whole_training_is_that_of_a_plain_loop(method, variant, more, tmp_path):
    spec = toy(method, variant, **SIZE | more)
    expected = plain.training(make(method, spec, data()), data(), hands_over(method, variant["phase"]))
    outcome = trained(make(method, spec, data()), tmp_path)
    assert outcome.history == expected["history"]
    assert outcome.best["epoch"] == expected["best"]["epoch"]
    assert outcome.best["robust"] == expected["best"]["robust"]
    assert outcome.best["report"] == expected["best"]["report"]
    assert_equal(outcome.best["tensors"], expected["best"]["tensors"])
    assert_equal(outcome.handed_over, expected["handed_over"])


def test_the_plain_loops_rates_change_from_epoch_to_epoch():
    """Else the comparison above would not notice a constant rate."""
    for case in CASES:
        settings = toy(*case.values, **SIZE)["train"]
        assert len({plain.rate(settings, epoch) for epoch in range(3)}) > 1, case.id


@pytest.mark.parametrize(
    ("method", "phase", "handed_over"), [("atmc", "dense", "best"), ("hydra", "pretrain", "last"), ("binary_subnet", None, "none")]
)
def test_of_equally_robust_epochs_the_first_is_deployed(method, phase, handed_over, monkeypatch, tmp_path):
    """Validation that is told what to say: the second epoch is the best, the third is as good, the last is worse."""
    spec = toy(method, {"phase": phase, "precision": None, "attack": {"name": "none"}}, **SIZE | {"train.epochs": 4})
    built, deployed, states = make(method, spec, data()), [], []
    robust = iter([0.1, 0.3, 0.3, 0.2])

    def validate(method, net, split, epoch, world):
        deployed.append(copy.deepcopy(net.state_dict()))
        states.append({name: t.clone() for name, t in method.tensors().items()})
        return {"val_clean": 0.5, "val_robust": next(robust), "val_loss": 1.0}

    monkeypatch.setattr(loop, "validate", validate)
    outcome = trained(built, tmp_path)
    assert [record["val_robust"] for record in outcome.history] == [0.1, 0.3, 0.3, 0.2]
    assert outcome.best["epoch"] == 1
    assert_equal(outcome.best["tensors"], deployed[1])
    assert_equal(outcome.handed_over, {"best": states[1], "last": states[3], "none": {}}[handed_over])
    assert not torch.equal(deployed[1]["stem_norm.running_mean"], deployed[3]["stem_norm.running_mean"]), "the epochs differ"


def test_a_run_may_select_by_clean_accuracy(monkeypatch, tmp_path):
    spec = toy("bcs", {"phase": None, "precision": "fp", "attack": {"name": "none"}}, **SIZE | {"validate.by": "clean"})
    clean, robust = iter([0.4, 0.6, 0.5]), iter([0.3, 0.1, 0.2])
    monkeypatch.setattr(loop, "validate", lambda *_: {"val_clean": next(clean), "val_robust": next(robust), "val_loss": 1.0})
    outcome = trained(make("bcs", spec, data()), tmp_path)
    assert outcome.best["epoch"] == 1
    assert outcome.best["robust"] == 0.1


def test_a_loss_that_is_no_number_ends_the_training(tmp_path):
    spec = toy("at", {"phase": None, "precision": "fp", "attack": {"name": "none"}}, **SIZE | {"train.lr": 1e30})
    with pytest.raises(UserError, match="training diverged: the loss of epoch 0 is (nan|inf); lower 'train.lr'"):
        trained(make("at", spec, data()), tmp_path)
