"""ATMC repeats what its official code computed, and the repeat notices when it does not.

The recordings are numbers written down while the official code ran on a small network; the step files are shortened to some of their runs.
"""

from pathlib import Path

import pytest
import torch

from baselines import atmc
from methods.pruning import codebook
from methods.pruning.admm import Admm
from tests.golden import kinds_atmc
from tests.golden.check import Check

HERE = Path(__file__).parent


def checks(name: str) -> list[Check]:
    torch.set_num_threads(1)
    return kinds_atmc.KINDS[name](HERE / f"{name}.npz")


@pytest.mark.parametrize("name", kinds_atmc.KINDS)
def test_repeats_the_recording(name):
    all_checks = checks(name)
    assert len(all_checks) > 20
    assert [check for check in all_checks if not check.passed] == []


def failing(name: str) -> set[str]:
    """The quantities that deviate, without the names of the runs."""
    return {check.quantity.split(" ", 1)[1] for check in checks(name) if not check.passed}


def test_notices_a_penalty_without_the_half(monkeypatch):
    monkeypatch.setattr(Admm, "penalty", lambda self: self.rho * self.distance())
    assert {"penalty", "gradients"} <= failing("atmc_steps")


def test_notices_an_update_at_the_first_batch(monkeypatch):
    monkeypatch.setattr(atmc.Atmc, "update_due", lambda self, step: (step - 1) % self.interval == 0)
    assert {"update", "Z", "U"} <= failing("atmc_steps")


def test_notices_a_random_start(monkeypatch):
    monkeypatch.setitem(atmc.RECIPE["run"]["attack"], "start", "uniform")
    assert {"x_adv", "running statistics"} <= failing("atmc_steps")


def test_notices_a_clean_batch_that_goes_first(monkeypatch):
    def swapped(net, clean, adv, y, w_clean):
        loss, logs = real(net, adv, clean, y, 1 - w_clean)
        return loss, logs | {"ce": logs.get("ce_clean", logs["ce"]), "ce_clean": logs["ce"]}

    real = atmc.mixed_loss
    monkeypatch.setattr(atmc, "mixed_loss", swapped)
    assert "running statistics" in failing("atmc_steps")


def test_notices_a_masked_momentum(monkeypatch):
    def masking(self, step, draws):
        real(self, step, draws)
        for tensor in self.compressed().values():
            self.optimizer.state[tensor]["momentum_buffer"].masked_fill_(tensor == 0, 0)

    real = atmc.Atmc.after_step
    monkeypatch.setattr(atmc.Atmc, "after_step", masking)
    assert failing("atmc_steps") == failing("atmc_steps_f32") == {"momentum"}


def test_notices_a_projection_by_layer(monkeypatch):
    real = atmc.keep_largest

    def by_tensor(tensors, kept):
        for tensor in tensors:
            real([tensor], kept * tensor.numel() // sum(t.numel() for t in tensors))

    monkeypatch.setattr(atmc, "keep_largest", by_tensor)
    assert {"state", "support of W"} <= failing("atmc_steps_f32")


def test_notices_an_empty_centre_that_stays(monkeypatch):
    def stay(values, index, count):
        centres = real(values, index, count)
        return torch.where(torch.stack([(index == j).any() for j in range(count)]), centres, 9.0)

    real = codebook.means
    monkeypatch.setattr(codebook, "means", stay)
    assert any("duplicate_seeds" in check.quantity for check in checks("atmc_quantize") if not check.passed)
