"""Initial signs: those of the law for the run's seed and the layer's name, in every method that draws signs."""

from __future__ import annotations

from functools import cache
from math import sqrt

import pytest
import torch

from methods.core.signs import signs
from methods.data.load import load
from methods.networks import init
from methods.networks.resnet import build
from methods.training.registry import load_method
from tests.specs import small

CPU = torch.device("cpu")


@cache
def sample():
    return load("cifar10", source="sample", train=48, val=8)


@pytest.mark.parametrize("method", ["binary_subnet", "rst", "bcs"])
def test_frozen_signs_are_those_of_the_law(method):
    made = load_method(method)(small(method, arch="rn18", sparsity=0.9), sample(), device=CPU)
    for name, maker in made.realisation.makers.items():
        weight = maker.signs if method == "bcs" else maker.weight
        assert weight.detach().sign().flatten().tolist() == signs(7, name, weight.numel()).tolist(), name


@pytest.mark.parametrize(
    ("kind", "size"),
    [("binary", 1), ("signed_kc", sqrt(2 / (18 * 0.5))), ("signed_constant", sqrt(2 / 18)), ("xavier_constant", sqrt(2 / (18 + 36)))],
)
def test_signs_have_one_magnitude_and_do_not_depend_on_the_generator(kind, size):
    shape = torch.Size([4, 2, 3, 3])
    weights = [init.weights(kind, shape, torch.Generator().manual_seed(i), keep=0.5, stream=(3, "stem")) for i in range(2)]
    assert torch.equal(*weights)
    assert torch.equal(weights[0], torch.from_numpy(signs(3, "stem", 72)).float().view(shape) * size)


def test_signs_without_a_stream_are_refused():
    with pytest.raises(ValueError, match="need a stream"):
        init.weights("binary", torch.Size([1, 1, 1, 1]), torch.Generator())


def test_names_of_layers_are_pinned():
    """The law draws by these names: another name would be another network."""
    with torch.device("meta"):
        names = [name for name, _ in build("rn50", classes=10).convs()]
    assert names[:5] == ["stem", "blocks.0.convs.0", "blocks.0.convs.1", "blocks.0.convs.2", "blocks.0.projection"]
    assert names[-4:] == ["blocks.15.convs.0", "blocks.15.convs.1", "blocks.15.convs.2", "head"]
    assert len(names) == 54
