"""The network that AutoAttack's own package ships as its example: a usual ResNet-18, trained without attacks, of which nothing is left."""

from __future__ import annotations

from pathlib import Path

import pyautoattack
import pytest
import torch
from pyautoattack.examples.resnet import ResNet18

from methods.core.trust import FAIL, NOT_APPLICABLE, PASS, WARN
from methods.evaluate import evaluate
from tests.methods.evaluation.nets import images, one_thread

ATTACK = {"version": "custom", "attacks": ["apgd-ce", "apgd-t", "square"], "apgd_iter": 10, "targets": 2, "square_queries": 20}


@pytest.fixture(scope="module")
def example():
    net = ResNet18()
    weights = Path(pyautoattack.__file__).parent / "examples" / "model_test.pt"
    net.load_state_dict(torch.load(weights, map_location="cpu", weights_only=True))
    with one_thread():
        yield net.eval()


def test_the_example_network_is_read_right(example):
    """Right on all images as they are, on none under attack at 8/255; and a number that cannot be too high is doubted by no check."""
    x, y = images(8)
    result = evaluate(example, x, y, spec={"attack": ATTACK, "eps": "8/255"})
    assert result.clean_acc == 1.0
    assert result.after["apgd-ce"] == 0.0
    assert result.trust.state == PASS
    assert {check.state for check in result.trust.checks} == {PASS, NOT_APPLICABLE}
    assert result.trust["attacks"].text.startswith("clean 100.0 %, apgd-ce 0.0 % (broke 8)")
    assert result.trust["temperature"].state == PASS


def test_the_example_network_with_saturated_logits_is_caught(example):
    """The same decisions with logits times 10 000: APGD on the cross-entropy alone sees no gradient, and the panel sees that."""
    x, y = images(4)
    masked = torch.nn.Sequential(example, Times(1e4))
    attack = {"version": "custom", "attacks": ["apgd-ce"], "apgd_iter": 60}
    result = evaluate(masked, x, y, spec={"attack": attack, "eps": "8/255"})
    assert result.robust_acc > 0.5
    assert result.trust["gradients"].state == FAIL
    assert result.trust["gradients"].number == 1
    assert result.trust["attacks"].state == WARN
    assert result.trust.state == FAIL


class Times(torch.nn.Module):
    def __init__(self, factor: float):
        super().__init__()
        self.factor = factor

    def forward(self, logits: torch.Tensor) -> torch.Tensor:
        return self.factor * logits
