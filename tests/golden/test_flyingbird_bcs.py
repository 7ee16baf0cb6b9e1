"""The suite repeats recorded steps of the official FlyingBird and BCS programs; deliberate mistakes are seen."""

from __future__ import annotations

from math import ceil
from pathlib import Path

import pytest
import torch

from baselines import bcs, flyingbird
from methods.core import allocation
from methods.pruning import topology
from methods.training.optim import SGDW
from tests.golden import replay
from tests.golden.check import Check

HERE = Path(__file__).parent
FILES = ("flyingbird_init.json", "flyingbird_init.npz", "flyingbird_update.npz", "flyingbird_train.npz", "bcs_steps.npz")


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def repeated(file: str) -> list[Check]:
    return replay.repeat(HERE / file, replay.kind_of(HERE / file, replay.kinds()))


@pytest.mark.parametrize("file", FILES)
def test_recording_is_repeated(file):
    checks = repeated(file)
    assert len(checks) > 20
    assert not [check for check in checks if not check.passed]


def exact_root(sizes, keep):
    """The ideal gas quota at fully solved F, a little off the released early stop."""
    low, high = 0.0, 1e20
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(n / (1 + middle * n) for n in sizes) > keep * sum(sizes) else (low, middle)
    return [1 / (1 + middle * n) for n in sizes]


def survivors_at_least(weight, mask, rate, extra=0.0):
    """Survivors may equal the threshold."""
    size, active, magnitude = mask.numel(), int(mask.sum()), weight.abs()
    if active == size:
        return mask, 0
    base, alive = (
        mask & (magnitude >= magnitude.flatten().kthvalue(min(rank, size)).values)
        for rank in (size - active + ceil(rate * active), size - active + ceil(rate * active) + ceil(rate * extra * active))
    )
    return alive, active - int(base.sum())


def regrow_all(weight, mask, rate, extra=0.0, *, right=topology.survivors):
    """The extra deaths are regrown too."""
    alive, died = right(weight, mask, rate, extra)
    return alive, int(mask.sum() - alive.sum()) if died else 0


def hold_weights_only(self, optimizer):
    with torch.no_grad():
        self.weight.mul_(self.mask)


def signs_of_all(series, window, *, or_equal, right=flyingbird.share):
    return right(series, 10**6, or_equal=or_equal)


BIRDS = [
    ("flyingbird_init.npz", allocation, "igq_fractions", exact_root, "igq: pruned fractions"),
    ("flyingbird_update.npz", topology, "survivors", survivors_at_least, "update: survivors"),
    ("flyingbird_update.npz", topology, "survivors", regrow_all, "update: regrowth target"),
    ("flyingbird_update.npz", topology, "ceil", int, "update: survivors"),
    ("flyingbird_update.npz", topology.Masked, "hold", hold_weights_only, "chain: momenta"),
    ("flyingbird_update.npz", flyingbird, "share", signs_of_all, "decision table: shares"),
    ("flyingbird_train.npz", topology.Masked, "hold", hold_weights_only, "momenta after the step"),
    ("flyingbird_train.npz", flyingbird, "is_update", lambda step, **_: step % 4 == 0, "masks"),
]


@pytest.mark.parametrize(("file", "place", "name", "mistake", "seen"), BIRDS, ids=[f"{b[2]}-{i}" for i, b in enumerate(BIRDS)])
def test_mistakes_in_flyingbird_are_seen(file, place, name, mistake, seen, monkeypatch):
    monkeypatch.setattr(place, name, mistake)
    assert seen in {check.quantity for check in repeated(file) if not check.passed}


def decay_times_rate(self):
    for group in self.param_groups:
        group["weight_decay"] *= group["lr"]
    right_step(self)
    for group in self.param_groups:
        group["weight_decay"] /= group["lr"]


def noise_on_all(self, was_active, noise, lr, *, wake):
    right_shake(self, torch.ones_like(was_active), noise, lr, wake=wake)


def asleep(self, was_active, noise, lr, *, wake):
    right_shake(self, was_active, noise, lr, wake=False)


def weight_of_all(self):
    return self.signs * self.theta


right_step, right_shake, right_connect = SGDW.step, bcs.Connections.shake, bcs.connect
CONNECTIONS = [
    (SGDW, "step", decay_times_rate, "parameters after the optimiser"),
    (bcs.Connections, "shake", noise_on_all, "theta after the noise"),
    (bcs.Connections, "shake", asleep, "theta after the noise"),
    (bcs.Connections, "forward", weight_of_all, "gradients of sleeping connections"),
    (bcs, "connect", lambda theta, wanted, keys, value: right_connect(theta, wanted, keys, 1e-6), "theta after rewiring"),
    (bcs, "connect", lambda theta, wanted, keys, value: right_connect(theta, wanted, 0.5 * (1 - keys), value), "new positions"),
]


@pytest.mark.parametrize(("place", "name", "mistake", "seen"), CONNECTIONS, ids=[f"{c[1]}-{i}" for i, c in enumerate(CONNECTIONS)])
def test_mistakes_in_bcs_are_seen(place, name, mistake, seen, monkeypatch):
    monkeypatch.setattr(place, name, mistake)
    assert seen in {check.quantity for check in repeated("bcs_steps.npz") if not check.passed}


def test_an_attack_in_train_mode_is_seen(monkeypatch):
    attack = {**bcs.RECIPE["run"]["attack"], "bn": "train"}
    monkeypatch.setitem(bcs.RECIPE["run"], "attack", attack)
    assert "share of other adversarial pixels" in {check.quantity for check in repeated("bcs_steps.npz") if not check.passed}
