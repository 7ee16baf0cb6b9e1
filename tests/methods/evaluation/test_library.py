"""The evaluation gives the library's answers, with less work."""

from __future__ import annotations

import pytest
import torch
from pyautoattack import AutoAttack
from torch import nn

from methods.core import eval_spec
from methods.evaluation.attacked_net import AttackedNet, attacked
from methods.evaluation.block import attack_block, library, plain_block
from methods.evaluation.observer import Observer
from tests.methods.evaluation.nets import ATTACK, SPEC, images, trained

pytestmark = pytest.mark.usefixtures("network")


def broken_and_robust(attack: dict, *, fast: bool, count: int = 80, **change) -> tuple[list[str], list[bool]]:
    """Our answers and the plain library's, on one block."""
    x, y = images(count)
    spec = eval_spec.parse({**SPEC, "attack": attack, **change})
    robust = plain_block(trained(), x, y, spec=spec, seed=11).tolist()
    with attacked(trained(), fast=fast) as net:
        return attack_block(net, x, y, spec=spec, seed=11, observer=Observer()), robust


@pytest.mark.parametrize("fast", [True, False])
def test_same_answers_as_a_plain_call_of_the_library(fast):
    broken, robust = broken_and_robust(ATTACK, fast=fast)
    assert [b == "none" for b in broken] == robust
    # The comparison would say little if one kind of answer were missing.
    assert {"none", "clean", "apgd-ce"} <= set(broken)


@pytest.mark.parametrize(
    "attack",
    [
        {"version": "custom", "attacks": ["apgd-dlr"], "apgd_iter": 6, "restarts": 3},
        {"version": "custom", "attacks": ["fab"], "fab_iter": 3, "restarts": 2},
        {"version": "custom", "attacks": ["square"], "square_queries": 150},
        {"version": "custom", "attacks": ["apgd-t"], "apgd_iter": 5, "targets": 9},
        {"version": "custom", "attacks": ["fab-t"], "fab_iter": 10, "targets": 4},
    ],
    ids=lambda attack: attack["attacks"][0],
)
def test_each_attack_alone_agrees_with_the_library(attack):
    broken, robust = broken_and_robust(attack, fast=False)
    assert [b == "none" for b in broken] == robust
    assert attack["attacks"][0] in broken


def test_l2_agrees_with_the_library():
    attack = {"version": "custom", "attacks": ["apgd-ce", "apgd-t"], "apgd_iter": 6, "targets": 3}
    broken, robust = broken_and_robust(attack, fast=True, norm="L2", eps=0.3)
    assert [b == "none" for b in broken] == robust
    assert {"none", "apgd-ce"} <= set(broken)


def test_standard_version_is_the_librarys():
    """Settings of the object that "standard" drives are those that the library sets for its standard version."""
    spec = eval_spec.parse({"attack": "standard"})
    net = trained()
    ours, theirs = library(net, spec, 5), AutoAttack(net, norm="Linf", eps=8 / 255, seed=5, version="standard")
    assert ours.attacks_to_run == theirs.attacks_to_run
    for part in ("apgd", "apgd_targeted", "fab", "square"):
        mine, library_part = vars(getattr(ours, part)), vars(getattr(theirs, part))
        assert mine.keys() == library_part.keys()
        assert {k: v for k, v in mine.items() if k != "logger"} == {k: v for k, v in library_part.items() if k != "logger"}


def test_the_sieve_spares_work():
    """Rows that are broken are not computed again: fewer images pass through the network than in a plain call."""
    seen = []

    class Counting(nn.Module):
        def forward(self, x):
            seen.append(len(x))
            return trained()(x)

    x, y = images(60)
    spec = eval_spec.parse({"attack": {"version": "custom", "attacks": ["apgd-ce"], "apgd_iter": 10}, "eps": "16/255"})
    plain_block(Counting(), x, y, spec=spec, seed=1)
    plain, seen[:] = sum(seen), []
    broken = attack_block(AttackedNet(Counting()), x, y, spec=spec, seed=1, observer=Observer())
    assert "apgd-ce" in broken
    assert sum(seen) < 0.8 * plain


class Counter(Observer):
    """Counts passes."""

    count = 0

    def passes(self, count: int) -> None:
        self.count += count


@pytest.mark.parametrize("name", ATTACK["attacks"])
def test_cost_is_a_bound_that_is_nearly_reached(name):
    """On points that nothing breaks an attack costs what the progress report says, but for a few passes of its own."""
    x, y = images(100)
    with torch.no_grad():
        right = trained()(x).max(1)[1] == y
    x, y = x[right], y[right]
    spec = eval_spec.parse({"attack": {**ATTACK, "attacks": [name]}, "eps": 1e-6})
    net, observer = AttackedNet(trained()), Counter()
    assert not any(p.requires_grad for p in net.dense.parameters())
    assert set(attack_block(net, x, y, spec=spec, seed=0, observer=observer, check=False)) == {"none"}
    assert spec.attack.cost(name) <= observer.count / len(x) <= 1.35 * spec.attack.cost(name) + 3
