"""Learning rates and optimisers, worked out by hand."""

import pytest
import torch

from methods.core.errors import UserError
from methods.training.optim import SGDW, learning_rate, optimizer


def rates(**settings) -> list[float]:
    settings = {"lr": 1.0, **settings}
    return [learning_rate(settings, epoch) for epoch in range(settings["epochs"])]


def test_a_milestone_is_the_first_epoch_of_its_rate():
    assert rates(schedule="steps", milestones=[2, 3], epochs=5) == pytest.approx([1, 1, 0.1, 0.01, 0.01])


def test_a_cosine_starts_at_the_rate_and_never_reaches_zero():
    assert rates(schedule="cosine", epochs=4) == pytest.approx([1, 0.853553, 0.5, 0.146447], abs=1e-6)


def test_warm_up_starts_above_zero_and_the_cosine_begins_after_it():
    assert rates(schedule="cosine", epochs=6, warmup=2) == pytest.approx([0.5, 1, 1, 0.853553, 0.5, 0.146447], abs=1e-6)
    assert rates(schedule="steps", milestones=[3], epochs=4, warmup=2) == pytest.approx([0.5, 1, 1, 0.1])


def test_hydras_cosine_has_its_full_rate_in_the_second_epoch():
    assert rates(schedule="cosine_hydra", epochs=4) == pytest.approx([0.853553, 1, 0.853553, 0.5], abs=1e-6)
    assert rates(schedule="cosine_hydra", epochs=1) == pytest.approx([0.5])


def test_unknown_names_are_refused():
    with pytest.raises(UserError, match="'train.schedule: linear'; allowed: cosine, cosine_hydra, steps"):
        rates(schedule="linear", epochs=1)
    with pytest.raises(UserError, match="'train.optimizer: lamb'; allowed: sgd, adam, sgdw"):
        optimizer([torch.zeros(1)], {"optimizer": "lamb", "lr": 1, "weight_decay": 0})


def test_decoupled_decay_follows_the_schedule_and_not_the_rate():
    """w <- w (1 - decay), v <- 0.5 v - lr g, w <- w + v; at a tenth of the rate also a tenth of the decay."""
    weight = torch.nn.Parameter(torch.tensor([1.0]))
    steps = SGDW([weight], lr=0.2, momentum=0.5, weight_decay=0.1)
    weight.grad = torch.tensor([1.0])
    steps.step()
    assert weight.item() == pytest.approx(0.9 - 0.2)
    steps.param_groups[0]["lr"] = 0.02
    steps.step()
    assert weight.item() == pytest.approx(0.7 * 0.99 + (0.5 * -0.2 - 0.02))


def test_sgd_has_momentum_and_coupled_decay():
    weight = torch.nn.Parameter(torch.tensor([1.0]))
    steps = optimizer([weight], {"optimizer": "sgd", "lr": 0.1, "momentum": 0.9, "weight_decay": 0.5})
    weight.grad = torch.tensor([1.0])
    steps.step()
    assert weight.item() == pytest.approx(1 - 0.1 * 1.5)
    steps.step()
    assert weight.item() == pytest.approx(0.85 - 0.1 * (0.9 * 1.5 + 1 + 0.5 * 0.85))
