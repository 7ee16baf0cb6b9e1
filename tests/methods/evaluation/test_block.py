"""The driver of the library's attacks: seeds, restarts, the ball, and clean logits that are computed once."""

from __future__ import annotations

import pytest
import torch
from pyautoattack.fab_pt import FABAttack_PT
from pyautoattack.square import SquareAttack
from torch import Tensor, nn

from methods.core import eval_spec
from methods.core.eval_spec import EvalSpec
from methods.evaluation.attacked_net import AttackedNet, View
from methods.evaluation.block import attack_block, check_ball, perturb
from methods.evaluation.observer import Observer
from tests.methods.evaluation.nets import ATTACK, images, trained

pytestmark = pytest.mark.usefixtures("network")

RADIUS = 8 / 255


class Recording(nn.Module):
    """The trained network, and every batch that it was given."""

    def __init__(self):
        super().__init__()
        self.batches: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        self.batches.append(x.detach().clone())
        return trained()(x)


def spec_of(attack: str, **knobs) -> EvalSpec:
    return eval_spec.parse({"attack": {**ATTACK, "attacks": [attack], **knobs}, "eps": "8/255"})


def attacked_images(net: nn.Module, spec: EvalSpec, seed: int, count: int = 12) -> Tensor:
    x, y = images(count)
    [name] = spec.attack.names
    with torch.no_grad():
        return perturb(View(AttackedNet(net), Observer()), x, y, name=name, spec=spec, seed=seed)


@pytest.mark.parametrize("name", ["apgd-ce", "apgd-dlr", "apgd-t"])
def test_apgd_starts_where_its_seed_says(name):
    """x + eps * u / max|u|, u uniform in [-1, 1] from torch's generator with that seed: written here from the attack's description."""
    x, y = images(12)
    right = trained()(x).argmax(1) == y  # only those are attacked
    for seed in (7, 8):
        net = Recording()
        attacked_images(net, spec_of(name, apgd_iter=1, targets=1), seed)
        torch.manual_seed(seed)
        u = 2 * torch.rand(x[right].shape) - 1
        start = (x[right] + RADIUS * u / (u.abs().flatten(1).amax(1).view(-1, 1, 1, 1) + 1e-12)).clamp(0, 1)
        assert any(batch.shape == start.shape and torch.allclose(batch, start, atol=1e-6) for batch in net.batches)


@pytest.mark.parametrize("seed", [7, 8])
def test_square_and_fab_are_the_librarys_with_that_seed(seed):
    """Objects made here, not by the code under test: same images, to the bit."""
    x, y = images(12)
    how = {"norm": "Linf", "eps": RADIUS, "seed": seed, "device": "cpu"}
    with torch.no_grad():
        square = SquareAttack(trained(), n_queries=60, p_init=0.8, resc_schedule=False, **how).perturb(x, y)
        fab = FABAttack_PT(trained(), n_restarts=3, n_iter=5, **how).perturb(x, y)
        targeted = FABAttack_PT(trained(), n_restarts=1, n_iter=5, targeted=True, n_target_classes=3, **how).perturb(x, y)
    plain = nn.Sequential(trained())  # not folded
    assert torch.equal(attacked_images(plain, spec_of("square"), seed), square)
    assert torch.equal(attacked_images(plain, spec_of("fab", restarts=3), seed), fab)
    assert torch.equal(attacked_images(plain, spec_of("fab-t", restarts=3), seed), targeted)
    assert not torch.equal(attacked_images(plain, spec_of("square"), seed + 1), square)


def test_fab_starts_as_often_as_it_is_told():
    """Where nothing can be broken within the ball, every restart costs its iterations."""
    costs = []
    for restarts in (1, 2, 4):
        net = Recording()
        attacked_images(net, spec_of("fab", restarts=restarts, fab_iter=3), 0)
        costs.append(len(net.batches))
    assert costs[1] > 1.6 * costs[0]
    assert costs[2] > 1.6 * costs[1]


def test_targeted_fab_starts_once_per_target():
    """As in the library's standard version, whatever `restarts` says."""
    costs = []
    for restarts in (1, 3):
        net = Recording()
        attacked_images(net, spec_of("fab-t", restarts=restarts, fab_iter=3), 0)
        costs.append(len(net.batches))
    assert costs[0] == costs[1]


def test_each_block_has_its_own_seed():
    """The seed of an evaluation and the number of a block reach the attack: the starts of two blocks of equal images differ."""
    from methods.evaluate import evaluate

    x, y = images(10)
    net = Recording()
    starts = {}
    for seed in (0, 1):
        net.batches.clear()
        spec = {"attack": {"version": "custom", "attacks": ["square"], "square_queries": 2}, "eps": "1/255", "seed": seed, "block": 10}
        evaluate(net, torch.cat([x, x]), torch.cat([y, y]), spec=spec, trust=False)
        moved = [batch for batch in net.batches if len(batch) < 10 or not torch.equal(batch, x)]
        starts[seed] = moved[0], moved[len(moved) // 2]
    firsts = [*starts[0], *starts[1]]
    assert not any(torch.equal(a, b) for i, a in enumerate(firsts) for b in firsts[:i])


@pytest.mark.parametrize("norm", ["Linf", "L2"])
def test_an_image_outside_of_the_ball_is_an_error(norm):
    x = torch.full((2, 3, 4, 4), 0.5)
    spec = eval_spec.parse({"eps": 0.1, "norm": norm})
    step = torch.zeros_like(x)
    step[1, 0, 0, 0] = 0.1
    check_ball(x, x, spec, "square")
    check_ball(x + step, x, spec, "square")
    check_ball(x - step * 1.00005, x, spec, "square")  # rounding
    for factor in (1.001, 1.5, 1.99):
        with pytest.raises(RuntimeError, match=rf"square returned an image outside of the {norm} ball"):
            check_ball(x + factor * step, x, spec, "square")
    edge = torch.ones_like(x)
    for outside in (edge + step / 2, -step / 2):
        with pytest.raises(RuntimeError, match=r"or of \[0, 1\]"):
            check_ball(outside, edge if outside.max() > 1 else torch.zeros_like(x), spec, "square")


def test_the_l2_ball_is_not_the_cube():
    x = torch.full((1, 3, 4, 4), 0.5)
    corner = x + 0.1
    check_ball(corner, x, eval_spec.parse({"eps": 0.1}), "fab")
    with pytest.raises(RuntimeError, match="L2 ball"):
        check_ball(corner, x, eval_spec.parse({"eps": 0.1, "norm": "L2"}), "fab")


def test_clean_logits_are_computed_once_for_all_attacks():
    """Every attack asks for the logits of the clean images first; they are those of the images that are left to it."""
    x, y = images(30)
    net = Recording()
    spec = eval_spec.parse({"attack": {**ATTACK, "apgd_iter": 3, "fab_iter": 2, "square_queries": 5}, "eps": "2/255"})
    broken = attack_block(AttackedNet(net), x, y, spec=spec, seed=0, observer=Observer(), check=False)
    assert len(set(broken) - {"none", "clean"}) >= 1  # so that later attacks have other rows
    survivor = x[broken.index("none")]
    looks = sum(bool((batch == survivor).flatten(1).all(1).any()) for batch in net.batches)
    # Once at first, once after each attack (whose answer for it is the clean image), and for each target of FAB with a gradient.
    assert looks == 1 + len(ATTACK["attacks"]) + ATTACK["targets"]
