"""RST: frozen signed constants, scores as the only trained tensors, the official fixed rate, its recipe."""

from __future__ import annotations

from functools import cache
from math import sqrt
from pathlib import Path

import pytest
import torch

from baselines.rst import Rst
from methods.core.allocation import fixed_counts
from methods.core.errors import UserError
from methods.data.load import load
from methods.networks.init import fan_in
from methods.training.loop import train
from methods.training.resume import Resume
from tests.specs import small
from workflow.suite.planning import recipes, resolve
from workflow.suite.planning.config import ROOT, load_scale

CPU = torch.device("cpu")


@cache
def sample():
    return load("cifar10", source="sample", train=48, val=8)


def build_rst(**cell) -> Rst:
    return Rst(small("rst", arch="rn18", rewrite={"train.epochs": 1}, **({"sparsity": 0.9} | cell)), sample(), device=CPU)


def at_scale_paper(dataset: str) -> dict:
    recipe, cell = recipes.load_all(ROOT)["rst"], {"method": "rst", "dataset": dataset}
    return resolve.resolve(recipe, cell, scale=load_scale("paper"), seed=1234, root=Path("no-such-data"))


@pytest.mark.parametrize("lbn", [False, True])
def test_scores_are_all_that_is_trained(lbn):
    method = build_rst(lbn=lbn)
    makers = list(method.realisation.makers.values())
    assert len(makers) == len(method.net.convs()) == len(method.trainables())
    assert {id(p) for p in method.trainables()} == {id(maker.scores) for maker in makers}
    assert all(norm.weight is None and norm.bias is None for norm in method.net.norms())
    assert method.net.head.bias is None


def test_weights_are_unscaled_signed_constants_and_scores_bounded_by_the_fan():
    for (_, conv), maker in zip((method := build_rst()).net.convs(), method.realisation.makers.values(), strict=True):
        fan = fan_in(conv.weight.shape)
        assert torch.allclose(maker.weight.abs(), torch.tensor(sqrt(2 / fan)))
        assert 0.9 / sqrt(fan) < maker.scores.abs().max() <= 1 / sqrt(fan)
        assert 0 < (maker.weight > 0).float().mean() < 1


def test_training_keeps_weights_and_counts(tmp_path):
    method = build_rst(lbn=True)
    makers = method.realisation.makers
    weights = {name: maker.weight.clone() for name, maker in makers.items()}
    scores = {name: maker.scores.detach().clone() for name, maker in makers.items()}
    train(method, sample(), resume=Resume(tmp_path, "x"), log=lambda _: None)
    sizes = [conv.weight.numel() for _, conv in method.net.convs()]
    assert method.report()["nonzero_per_layer"] == fixed_counts(sizes, 0.9)
    for name, maker in makers.items():
        assert torch.equal(maker.weight, weights[name])
        assert not torch.equal(maker.scores, scores[name])


def test_attack_moves_the_statistics():
    """Seven attack iterates and the update, all in train mode."""
    method = Rst(small("rst", arch="rn18", rewrite={"attack.steps": 7}), sample(), device=CPU)
    batch = next(iter(sample().train.batches(batch=8, seed=7, epoch=0, augment="none", device=CPU)))
    method.net.train()
    method.loss(batch, method.draws("step", 0, 0))
    assert {int(norm.num_batches_tracked) for norm in method.net.norms()} == {8}


@pytest.mark.parametrize("weights", ["kaiming_normal", "kaiming_uniform", "xavier_normal"])
def test_other_real_valued_weights(weights):
    method = build_rst(init={"weights": weights})
    report = method.report()
    assert report["nonzero"] == sum(maker.kept for maker in method.realisation.makers.values())
    assert report["distinct_values"] > 2


def test_what_rst_does_not_have_is_refused():
    with pytest.raises(UserError, match="'precision: binary' is not possible for rst"):
        build_rst(precision="binary")
    with pytest.raises(UserError, match="options.counts"):
        build_rst(p=0.1)
    adaptive = build_rst(p=0.1, options={"counts": "adaptive"})
    assert adaptive.report()["nonzero_per_layer"][0] == adaptive.net.stem.weight.numel()


def test_recipe_at_scale_paper():
    ten, hundred, large = (at_scale_paper(name) for name in ("cifar10", "cifar100", "imagenet100"))
    assert ten["train"] == hundred["train"]
    assert (ten["train"]["epochs"], ten["train"]["milestones"], ten["train"]["batch"]) == (160, [80, 120], 256)
    assert (ten["attack"]["steps"], ten["attack"]["step"], ten["attack"]["pick"]) == (7, 0.25, "last")
    assert (hundred["attack"]["steps"], hundred["attack"]["step"], hundred["eps"]) == (7, 0.5, "4/255")
    assert large["attack"] == {"name": "fgsm_atta", "step": 0.5}
    expected = {"optimizer": "sgd", "lr": 0.256, "momentum": 0.875, "weight_decay": 2**-15, "schedule": "cosine"}
    assert large["train"] == expected | {"warmup": 5, "epochs": 100, "batch": 256}
