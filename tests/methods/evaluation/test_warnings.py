"""What the library warns of becomes data."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from methods.evaluate import evaluate
from tests.methods.evaluation.nets import EPS, images, trained

pytestmark = pytest.mark.usefixtures("network")


class Randomised(nn.Module):
    def forward(self, x):
        return trained()(x + 0.2 * torch.rand_like(x))


class Probabilities(nn.Module):
    def forward(self, x):
        return trained()(x).softmax(1)


class Flat(nn.Module):
    """Logits without any gradient."""

    def forward(self, x):
        return (trained()(x) * 2).round() + 0 * x.flatten(1)[:, :10]


class Dynamic(nn.Module):
    def forward(self, x):
        with torch.enable_grad():
            moved = x.detach().clone().requires_grad_()
            (grad,) = torch.autograd.grad(trained()(moved).sum(), moved)
        return trained()(x + 0 * grad)


@pytest.mark.parametrize(
    ("net", "kind"), [(Randomised, "randomized"), (Probabilities, "probabilities"), (Flat, "zero_gradient"), (Dynamic, "dynamic")]
)
def test_warnings_of_the_library_are_data(net, kind):
    attack = {"version": "custom", "attacks": ["apgd-t"], "apgd_iter": 2, "targets": 1}
    result = evaluate(net(), *images(60), spec={"attack": attack, "eps": EPS, "block": 30})
    notes = [w for w in result.warnings if w["kind"] == kind]
    # Properties of the network are looked at once, in the first block, as the library does in its first batch.
    assert notes
    assert sorted({n for w in notes for n in w["blocks"]}) == ([0, 1] if kind == "zero_gradient" else [0])
    assert all("flags_doc" not in w["message"] for w in notes)
    # The library's own counters outlive a call; the next network must not inherit the verdict.
    quiet = evaluate(trained(), *images(60), spec={"attack": attack, "eps": EPS, "block": 30})
    assert quiet.warnings == ()


def test_square_warning_looks_at_all_examples():
    """Square alone breaks points of a network whose gradients are useless; the library's check says so, once."""
    attack = {"version": "custom", "attacks": ["apgd-ce", "square"], "apgd_iter": 2, "square_queries": 40}
    result = evaluate(Flat(), *images(60), spec={"attack": attack, "eps": "12/255", "block": 30})
    assert result.after["square"] < result.after["apgd-ce"]
    assert [w["attack"] for w in result.warnings if w["kind"] == "square"] == ["square"]
