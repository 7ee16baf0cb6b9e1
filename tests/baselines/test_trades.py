"""TRADES: loss, attack and the three updates of the running statistics."""

from __future__ import annotations

import copy
from math import log

import pytest
import torch
import torch.nn.functional as F

from baselines import trades
from methods.core.errors import UserError
from methods.data.load import load
from methods.training.losses import trades_loss
from tests.specs import small
from workflow.suite.planning import recipes, resolve
from workflow.suite.planning.config import ROOT, load_scale

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def data():
    return load("cifar10", source="sample", train=24, val=8)


def make(data, **cell):
    method = trades.METHOD(small("trades", arch="rn18", **cell), data, device=CPU)
    batch = next(iter(data.train.batches(batch=12, seed=0, epoch=0, augment="none", device=CPU)))
    method.net.train()
    return method, batch


def paper(**cell) -> dict:
    recipe = recipes.load_all(ROOT)["trades"]
    return resolve.resolve(recipe, {"method": "trades", **cell}, scale=load_scale("paper"), seed=1234, root=ROOT)


def statistics(net) -> torch.Tensor:
    return torch.cat([torch.cat([norm.running_mean, norm.running_var]) for norm in net.norms()])


def test_loss_by_hand():
    """Two images, two classes: cross-entropy of clean logits plus beta times the mean KL(p(clean) || p(adversarial))."""
    clean = torch.tensor([[0.0, 0.0], [log(3.0), 0.0]], requires_grad=True)
    adversarial = torch.tensor([[log(3.0), 0.0], [0.0, 0.0]], requires_grad=True)
    loss, logs = trades_loss(clean, adversarial, torch.tensor([0, 0]), beta=6.0)
    ce = (log(2) + log(4 / 3)) / 2
    first = 0.5 * log(0.5 / 0.75) + 0.5 * log(0.5 / 0.25)
    second = 0.75 * log(0.75 / 0.5) + 0.25 * log(0.25 / 0.5)
    assert loss.item() == pytest.approx(ce + 6 * (first + second) / 2, rel=1e-6)
    assert logs["ce"].item() == pytest.approx(ce, rel=1e-6)
    assert logs["kl"].item() == pytest.approx((first + second) / 2, rel=1e-6)
    loss.backward()
    # d KL / d adversarial = (q - p) per image; the clean branch gets a gradient from both terms.
    assert torch.allclose(adversarial.grad, 6 / 2 * torch.tensor([[0.25, -0.25], [-0.25, 0.25]]))
    assert not torch.allclose(clean.grad, torch.tensor([[-0.25, 0.25], [-0.125, 0.125]]))


def test_attack_stays_in_the_box_and_leaves_the_statistics_alone(data):
    method, batch = make(data, rewrite={"attack.steps": 10})
    before, mode_before = statistics(method.net), method.net.training
    clean, adversarial = method.adversarial(batch, method.draws("step"))
    assert torch.equal(clean, batch.x)
    assert (adversarial - clean).abs().max() <= method.eps + 1e-6
    assert adversarial.min() >= 0
    assert adversarial.max() <= 1
    assert torch.equal(statistics(method.net), before)
    assert method.net.training is mode_before is True
    method.net.eval()
    with torch.no_grad():
        p, q, r = (F.softmax(method.net(images), 1) for images in (clean, adversarial, clean + method.eps))
    assert F.kl_div(q.log(), p, reduction="sum") > F.kl_div(r.clamp_min(1e-30).log(), p, reduction="sum") > 0


@pytest.mark.parametrize("precision", ["fp", "binary"])
def test_one_step_equals_three_forwards(data, precision):
    """The official order: forward clean, adversarial, clean again; the loss uses first, second and third."""
    method, batch = make(data, precision=precision)
    twin = copy.deepcopy(method.net)
    loss, _ = method.loss(batch, method.draws("step"))
    loss.backward()
    _, adversarial = make_attack(method, batch)
    first, second, third = twin(batch.x), twin(adversarial), twin(batch.x)
    beta = method.options["beta"]
    kl = F.kl_div(F.log_softmax(second, 1), F.softmax(third, 1), reduction="sum")
    expected = F.cross_entropy(first, batch.y) + beta / len(batch.y) * kl
    expected.backward()
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    assert torch.allclose(statistics(method.net), statistics(twin), rtol=1e-4, atol=1e-5)
    assert [norm.num_batches_tracked.item() for norm in method.net.norms()] == [3] * len(twin.norms())
    ours, theirs = (torch.cat([conv.weight.grad.flatten() for _, conv in net.convs()]) for net in (method.net, twin))
    assert (ours - theirs).abs().max() <= 1e-3 * theirs.abs().max()


def make_attack(method, batch):
    """The attack of the step again: it depends on eval-mode statistics, so it is made from those before the step."""
    norms = method.net.norms()
    saved = [(n.running_mean.clone(), n.running_var.clone()) for n in norms]
    for n in norms:
        n.running_mean.zero_()
        n.running_var.fill_(1)
    made = method.adversarial(batch, method.draws("step"))
    for n, (mean, var) in zip(norms, saved, strict=True):
        n.running_mean.copy_(mean)
        n.running_var.copy_(var)
    return made


def test_two_forwards_leave_out_one_update(data):
    method, batch = make(data, options={"forwards": 2})
    method.loss(batch, method.draws("step"))
    assert {norm.num_batches_tracked.item() for norm in method.net.norms()} == {2}


def test_vanilla_training_is_plain_cross_entropy(data):
    method, batch = make(data, eps=0)
    twin = copy.deepcopy(method.net)
    loss, logs = method.loss(batch, method.draws("step"))
    assert loss.item() == pytest.approx(F.cross_entropy(twin(batch.x), batch.y).item(), rel=1e-6)
    assert set(logs) == {"acc"}
    assert {norm.num_batches_tracked.item() for norm in method.net.norms()} == {1}


def test_binary_weights_are_signs(data):
    method, _ = make(data, precision="binary", lbn=True)
    assert all(set(conv.weight.unique().tolist()) <= {-1.0, 1.0} for _, conv in method.net.convs())
    assert set(method.realisation.makers) == {name for name, _ in method.net.convs()}


def test_settings_at_scale_paper():
    fp, binary = paper(dataset="cifar10"), paper(dataset="cifar100", precision="binary")
    assert fp["train"] == {
        **{"optimizer": "sgd", "lr": 0.1, "momentum": 0.9, "weight_decay": 5e-4},
        **{"schedule": "steps", "milestones": [200, 300], "epochs": 400, "batch": 512},
    }
    assert binary["train"] == {
        **{"optimizer": "adam", "lr": 1e-4, "weight_decay": 5e-4, "schedule": "cosine", "epochs": 400, "batch": 512},
    }
    for spec, eps in ((fp, "8/255"), (binary, "4/255")):
        assert spec["eps"] == eps
        assert spec["attack"] == {"name": "trades", "steps": 10, "step": 0.25, "bn": "eval"}
        assert spec["options"] == {"beta": 6, "forwards": 3}


@pytest.mark.parametrize(
    "cell, message",
    [({"attack": {"name": "fgsm_atta", "step": 0.5}}, "allowed: trades, none"), ({"options": {"forwards": 4}}, "must be 3")],
)
def test_bad_setting_is_an_error(data, cell, message):
    with pytest.raises(UserError, match=message):
        make(data, **cell)
