"""The network that attacks see: exact, counted, and confirmed by the dense network where an engine computes it."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from methods.core import eval_spec
from methods.evaluate import evaluate
from methods.evaluation.attacked_net import AttackedNet, View
from methods.evaluation.block import attack_block
from methods.evaluation.observer import Observer
from tests.methods.evaluation.nets import ATTACK, EPS, SPEC, images, trained

pytestmark = pytest.mark.usefixtures("network")


class Counter(Observer):
    """Counts passes."""

    count = 0

    def passes(self, count: int) -> None:
        self.count += count


def test_logits_are_remembered_for_exactly_the_clean_images():
    x, _ = images(8)
    net, counter = AttackedNet(trained()), Counter()
    with torch.no_grad():
        right, other = net.dense(x), net.dense(x.flip(0))
        view = View(net, counter).knowing(x, right.clone())
        answer = view(x)
        assert torch.equal(answer, right)
        assert counter.count == 0
        answer.zero_()  # Square does such things
        assert torch.equal(view(x.clone()), right)
        assert torch.equal(view(x.flip(0)), other)  # same shape, other images
        assert counter.count == 8
        assert torch.equal(view(x[:4]), net.dense(x[:4]))
    image = x.clone().requires_grad_()
    view(image).sum().backward()
    assert image.grad.abs().sum() > 0
    assert counter.count == 8 + 4 + 16


class Liar(nn.Module):
    """An engine's form of a network that is right about clean images and calls every image misclassified that moved."""

    def __init__(self, net: nn.Module, x: torch.Tensor):
        super().__init__()
        self.net, self.x = net, x

    def forward(self, x):
        logits = self.net(x)
        moved = torch.tensor([not any(torch.equal(image, clean) for clean in self.x) for image in x])
        return torch.where(moved[:, None], -logits, logits)


@pytest.mark.parametrize("attack", ATTACK["attacks"])
def test_no_example_is_broken_on_the_word_of_an_engine(attack):
    """With a radius at which nothing breaks, an engine that cries wolf changes no answer."""
    x, y = images(24)
    spec = {"attack": {**ATTACK, "attacks": [attack]}, "eps": 1e-5}
    plain = evaluate(trained(), x, y, spec=spec)
    assert attack not in plain.broken
    lied = evaluate(trained(), x, y, spec=spec, engine=lambda net: Liar(net, x))
    assert lied.broken == plain.broken


class FirstLook(nn.Module):
    """An engine's form of a network whose first answer has the two largest logits of each row just exchanged."""

    def __init__(self, net: nn.Module):
        super().__init__()
        self.net, self.looks = net, 0

    def forward(self, x):
        self.looks += 1
        logits = self.net(x)
        top = logits.topk(2).values
        lowered = logits - (top[:, :1] - top[:, 1:] + 1e-4) * (logits == top[:, :1])
        return lowered if self.looks == 1 else logits


def test_apgd_goes_on_with_a_row_that_only_the_engine_misclassifies():
    x, y = images(40)
    spec = eval_spec.parse({"attack": {"version": "custom", "attacks": ["apgd-ce"], "apgd_iter": 20}, "eps": "16/255"})
    how = {"spec": spec, "seed": 1, "observer": Observer(), "check": False}
    plain = attack_block(AttackedNet(trained()), x, y, **how)
    misled = attack_block(AttackedNet(trained(), engine=FirstLook), x, y, **how)
    assert plain.count("apgd-ce") > 5
    assert misled.count("apgd-ce") >= plain.count("apgd-ce") - 1


def test_an_engine_is_searched_on_and_may_decline():
    x, y = images(30)
    used = []

    class Form(nn.Module):
        def forward(self, x):
            used.append(len(x))
            return trained()(x)

    plain = evaluate(trained(), x, y, spec=SPEC, fast=False)
    assert evaluate(trained(), x, y, spec=SPEC, fast=False, engine=lambda net: Form()).broken == plain.broken
    assert sum(used) > 100
    assert evaluate(trained(), x, y, spec=SPEC, fast=False, engine=lambda net: None).broken == plain.broken


def test_the_observer_hears_everything_in_order():
    class Diary(Observer):
        def __init__(self):
            self.lines = []

        def begin(self, attack, robust):
            self.lines.append(("begin", attack, robust))

        def end(self, attack, broken):
            self.lines.append(("end", attack, broken.count("none")))

    x, y = images(40)
    diary, spec = Diary(), eval_spec.parse({**SPEC, "eps": EPS})
    broken = attack_block(AttackedNet(trained()), x, y, spec=spec, seed=1, observer=diary)
    assert [line[:2] for line in diary.lines] == [(when, name) for name in ATTACK["attacks"] for when in ("begin", "end")]
    counts = [line[2] for line in diary.lines]
    assert counts[1:-1:2] == counts[2::2]  # what an attack leaves is what the next one begins with
    assert counts[-1] == broken.count("none")
