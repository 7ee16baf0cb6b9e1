"""Where a mask stays as it is, the engine computes gradients of what it keeps alone, and training goes the same way."""

from __future__ import annotations

import pytest
import torch

from baselines.flyingbird import FlyingBird
from baselines.hydra import Hydra
from methods.binary_subnet import BinarySubnet
from methods.data.load import Data, load
from methods.distributed.world import ALONE
from methods.sparse import backward
from methods.training.loop import epoch_batches
from methods.training.method import Method
from methods.training.optim import optimizer
from methods.training.step import step
from tests.specs import small

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def data() -> Data:
    return load("cifar10", source="sample", train=96, val=20)


@pytest.fixture
def calls(monkeypatch) -> list[str]:
    """Which kernel computed the gradient of a weight, layer by layer."""
    called: list[str] = []
    for name in ("gradient_of_all", "gradient_of_some"):
        plain = getattr(backward, name)
        monkeypatch.setattr(backward, name, lambda *args, name=name, plain=plain: called.append(name) or plain(*args))
    return called


def flyingbird(data: Data, **options) -> Method:
    """Its mask is renewed after every step: weights that have just grown are 0, and want a gradient all the same."""
    cell = {"arch": "rn18", "eps": 0, "options": {"update_every": [1, 1], **options}}
    return FlyingBird(small("flyingbird", rewrite={"width": 0.25}, **cell), data, device=CPU)


def hydra(data: Data, precision: str) -> Method:
    """Its last phase, after two that nobody trained."""
    parent = None
    for phase in ("pretrain", "prune", "finetune"):
        spec = small("hydra", arch="rn18", eps=0, phase=phase, precision=precision, rewrite={"width": 0.25})
        method = Hydra(spec, data, device=CPU, parent=parent)
        parent = method.tensors()
    return method


METHODS = {
    "flyingbird": flyingbird,
    "hydra": lambda data: hydra(data, "fp"),
    "hydra-binary": lambda data: hydra(data, "binary"),
}


def stepped(method: Method, data: Data) -> dict[str, torch.Tensor]:
    """All tensors after two steps on the engine."""
    method.engine, method.optimizer = "sparse", optimizer(method.trainables(), method.spec["train"])
    for number, batch in zip(range(2), epoch_batches(method, data, 0, 0, ALONE), strict=False):
        step(method, batch, 0, number, ALONE)
    return {name: tensor.clone() for name, tensor in method.tensors().items()}


@pytest.mark.parametrize("name", METHODS)
def test_training_is_that_with_all_gradients(name, data, calls, monkeypatch):
    some = stepped(METHODS[name](data), data)
    assert calls.count("gradient_of_some") > calls.count("gradient_of_all")  # a few thin layers keep most of their weights
    calls.clear()
    monkeypatch.setattr(backward, "FEW", -1.0)
    every = stepped(METHODS[name](data), data)
    assert "gradient_of_some" not in calls
    for tensor in every:
        assert torch.allclose(some[tensor].float(), every[tensor].float(), rtol=1e-3, atol=1e-5), tensor


def test_growth_by_gradient_looks_at_all_of_them(data, calls):
    stepped(flyingbird(data, growth="gradient"), data)
    assert "gradient_of_some" not in calls


def test_scores_want_the_gradient_of_every_weight(data, calls):
    spec = small("binary_subnet", arch="rn18", eps=0, rewrite={"width": 0.25})
    stepped(BinarySubnet(spec, data, device=CPU), data)
    assert set(calls) == {"gradient_of_all"}
