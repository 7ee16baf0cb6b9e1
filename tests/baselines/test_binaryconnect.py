"""BinaryConnect-AT: signs in the network, latents in the optimiser."""

from __future__ import annotations

import pytest
import torch

from baselines import binaryconnect
from methods.data.load import load
from methods.pruning.makers import Signed
from methods.training.optim import learning_rate, optimizer
from tests.specs import small
from workflow.suite.planning import recipes, resolve
from workflow.suite.planning.config import ROOT, load_scale

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def data():
    return load("cifar10", source="sample", train=24, val=8)


def paper(**cell) -> dict:
    """The spec of a cell at scale paper."""
    recipe = recipes.load_all(ROOT)["binaryconnect"]
    return resolve.resolve(recipe, {"method": "binaryconnect", **cell}, scale=load_scale("paper"), seed=1234, root=ROOT)


def test_four_latents_by_hand():
    """Clamp, sign with sign(0) = +1, gradient handed through unchanged, also beyond the clamp."""
    maker = Signed(torch.tensor([-1.5, -0.2, 0.0, 0.7]))
    maker.latent.grad = None
    with torch.no_grad():
        maker.prepare()
    assert torch.equal(maker.latent, torch.tensor([-1.0, -0.2, 0.0, 0.7]))
    made = maker()
    assert made.tolist() == [-1, -1, 1, 1]
    made.backward(torch.tensor([1.0, 2.0, 3.0, 4.0]))
    assert maker.latent.grad.tolist() == [1, 2, 3, 4]


def test_first_adam_step_by_hand():
    """The first bias-corrected step is lr * sign(gradient + decay * latent): the decay is part of the gradient."""
    latent = torch.nn.Parameter(torch.tensor([0.5, -0.5, 0.5, 0.0]))
    adam = optimizer([latent], {"optimizer": "adam", "lr": 1e-4, "weight_decay": 5e-4})
    latent.grad = torch.tensor([1.0, 1.0, -1e-5, 0.0])
    adam.step()
    # third: -1e-5 + 5e-4 * 0.5 > 0, so decay decides the direction
    assert torch.allclose(latent.detach(), torch.tensor([0.4999, -0.5001, 0.4999, 0.0]), atol=1e-7)


@pytest.mark.parametrize("lbn", [False, True])
def test_every_convolution_is_binary_and_every_latent_is_trained(data, lbn):
    method = binaryconnect.METHOD(small("binaryconnect", arch="rn18", lbn=lbn), data, device=CPU)
    convs = dict(method.net.convs())
    assert set(method.realisation.makers) == set(convs)
    assert all(set(conv.weight.unique().tolist()) <= {-1.0, 1.0} for conv in convs.values())
    latents = sum(maker.latent.numel() for maker in method.realisation.makers.values())
    affine = sum(2 * norm.num_features for norm in method.net.norms())
    assert sum(p.numel() for p in method.trainables()) == latents + affine
    assert (method.net.last_norm is not None) == lbn
    if lbn:
        assert method.net.last_norm.affine


def test_a_step_moves_latents_by_the_gradient_of_the_signs(data):
    method = binaryconnect.METHOD(small("binaryconnect", arch="rn18"), data, device=CPU)
    method.optimizer = optimizer(method.trainables(), method.spec["train"])
    batch = next(iter(data.train.batches(batch=24, seed=0, epoch=0, augment="none", device=CPU)))
    method.net.train()
    loss, _ = method.loss(batch, method.draws("step"))
    loss.backward()
    by_layer = {name: conv.weight.grad.clone() for name, conv in method.net.convs()}
    method.pull()
    for name, maker in method.realisation.makers.items():
        assert torch.equal(maker.latent.grad, by_layer[name])
    before = {name: maker.latent.detach().clone() for name, maker in method.realisation.makers.items()}
    method.optimizer.step()
    method.push()
    rate = method.spec["train"]["lr"]
    for name, conv in method.net.convs():
        latent = method.realisation.makers[name].latent.detach()
        assert latent.abs().max() <= 1
        # A first Adam step moves each entry by at most the rate; the clamp can add only what was outside.
        assert (latent - before[name].clamp(-1, 1)).abs().max() <= 1.01 * rate
        assert torch.equal(conv.weight.detach(), torch.where(latent >= 0, 1.0, -1.0))


def test_latents_start_kaiming_normal(data):
    method = binaryconnect.METHOD(small("binaryconnect", arch="rn18", rewrite={"width": 0.5}), data, device=CPU)
    for maker in method.realisation.makers.values():
        fan_in, size = maker.latent[0].numel(), maker.latent.numel()
        assert abs(maker.latent.std().item() / (2 / fan_in) ** 0.5 - 1) < 5 * 0.71 / size**0.5 + 0.002  # 0.002: clamped tails


def test_settings_at_scale_paper():
    spec = paper(dataset="cifar10")
    expected = {"optimizer": "adam", "lr": 1e-4, "weight_decay": 5e-4, "schedule": "cosine", "epochs": 400, "batch": 512}
    assert spec["train"] == expected
    assert spec["attack"] == {"name": "pgd", "steps": 10, "step": 0.25, "start": "uniform", "pick": "worst", "bn": "train"}
    assert paper(dataset="cifar100")["eps"] == "4/255"
    large = paper(dataset="imagenet100")
    assert large["attack"] == {"name": "fgsm_atta", "step": 0.5}
    assert large["train"] == {**expected, "epochs": 100}
    assert learning_rate(spec["train"], 0) == 1e-4
    assert learning_rate(spec["train"], 200) == pytest.approx(5e-5)


def test_vanilla_training_sees_clean_images(data):
    method = binaryconnect.METHOD(small("binaryconnect", arch="rn18", eps=0), data, device=CPU)
    batch = next(iter(data.train.batches(batch=8, seed=0, epoch=0, augment="none", device=CPU)))
    clean, adversarial = method.adversarial(batch, method.draws("step"))
    assert torch.equal(clean, adversarial)
