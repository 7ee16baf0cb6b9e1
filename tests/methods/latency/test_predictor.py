"""One or a few images by kept weights: as near to the network in double precision as dense float32 is, for every kind of network."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn

from methods.core.errors import UserError
from methods.latency import FEW, Predictor, predictor
from methods.networks.resnet import Net
from tests.methods.sparse.nets import images, pruned

KINDS = {
    "rn18": {},
    "rn34": {"arch": "rn34", "width": 0.125},
    "rn50": {"arch": "rn50", "width": 0.125},
    "affine": {"bn_affine": True},
    "no last norm": {"lbn": False},
    "bias": {"lbn": False, "head_bias": True},
    "bias and last norm": {"head_bias": True, "bn_affine": True},
    "real": {"real": True},
    "imagenet": {"stem": "imagenet", "width": 0.125},
    "imagenet rn50": {"arch": "rn50", "stem": "imagenet", "width": 0.125, "bn_affine": True},
    "small network": {"arch": "small_rn18_p10", "width": 1.0},
    "empty channels": {"sparsity": 0.998},
}


@pytest.fixture(autouse=True)
def insisted(monkeypatch):
    """Small networks keep a larger share of their multiplications than those that it pays for."""
    monkeypatch.setenv("SUITE_ENGINE", "sparse")


def error(logits: Tensor, exact: Tensor) -> float:
    return ((logits - exact).abs().max() / exact.abs().max()).item()


def exact_and_dense(net: Net, x: Tensor) -> tuple[Tensor, float]:
    """Logits in double precision, and how far dense float32 is from them."""
    with torch.no_grad():
        exact = copy.deepcopy(net).eval().double()(x.double())
        return exact, error(copy.deepcopy(net).eval()(x), exact)


def check(net: Net, x: Tensor) -> None:
    """As near to double precision as dense float32, up to a factor that rounding explains."""
    predict = Predictor(net)
    exact, dense = exact_and_dense(net, x)
    assert predict.engine == "sparse", predict.reason
    assert error(predict(x), exact) < 5 * dense + 1e-6


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_network(kind):
    side = 64 if "imagenet" in kind else 32
    check(pruned(**KINDS[kind]), images(2, side)[0])


@pytest.mark.parametrize(("height", "width"), [(32, 32), (16, 16), (8, 8), (17, 17), (20, 12), (9, 31), (2, 3)])
@pytest.mark.parametrize("arch", ["rn18", "rn50"])
def test_images_of_any_size(arch, height, width):
    check(pruned(arch, width=0.125), torch.rand(1, 3, height, width, generator=torch.Generator().manual_seed(3)))


@pytest.mark.parametrize(("height", "width"), [(33, 47), (32, 50)])
def test_large_images_of_odd_size(height, width):
    check(pruned(width=0.125, stem="imagenet"), torch.rand(1, 3, height, width, generator=torch.Generator().manual_seed(3)))


@pytest.mark.parametrize("count", [1, 3, FEW, FEW + 1])
def test_batches_of_any_size(count):
    check(pruned(), images(count)[0])


def test_more_than_a_few_images_are_given_to_the_engine_of_many(monkeypatch):
    predict, called = Predictor(pruned()), []
    monkeypatch.setattr(predict.net, "compute", lambda x: pytest.fail("computed by torch"))
    monkeypatch.setattr(predictor.Predictor, "_program", lambda *size: called.append(size))
    predict(images(FEW + 1)[0])
    assert called == []


def test_an_image_has_the_same_bits_alone_in_company_and_by_two_threads():
    predict, x = Predictor(pruned()), images(5)[0]
    alone = torch.cat([predict(one[None]) for one in x])
    assert torch.equal(predict(x), alone)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        assert torch.equal(predict(x), alone)
    finally:
        torch.set_num_threads(before)


def test_sizes_may_alternate():
    """Borders stay zero whatever was computed before."""
    predict, small, large = Predictor(pruned()), images(1, 16)[0], images(1, 24)[0]
    first = predict(small)
    predict(large)
    predict(1 - small)
    assert torch.equal(predict(small), first)


def test_the_network_may_change_afterwards():
    net, x = pruned(), images(1)[0]
    predict = Predictor(net)
    before = predict(x)
    net.stem.weight.data.zero_()
    assert torch.equal(predict(x), before)


def test_a_network_in_train_mode_is_computed_in_eval_mode_and_left_alone():
    net, x = pruned().train(), images(1)[0]
    statistics = net.stem_norm.running_mean.clone()
    exact, dense = exact_and_dense(net, x)
    assert error(Predictor(net)(x), exact) < 5 * dense + 1e-6
    assert net.training
    assert torch.equal(net.stem_norm.running_mean, statistics)


def test_images_in_any_memory_format():
    predict, x = Predictor(pruned()), images(2)[0]
    assert torch.equal(predict(x.contiguous(memory_format=torch.channels_last)), predict(x))


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_what_is_no_number_stays_none(value):
    x = images(1)[0]
    x[0, :, 4:9, 4:9] = value
    assert not torch.isfinite(Predictor(pruned())(x)).all()


def test_images_of_another_shape_are_refused():
    with pytest.raises(UserError, match=r"expected \(images, 3, height, width\)"):
        Predictor(pruned())(torch.rand(1, 4, 32, 32))


class Other(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.mean((2, 3))


def test_dense_where_the_kernels_cannot_do_it(monkeypatch):
    predict, x = Predictor(Other()), images(2)[0]
    assert predict.engine == "dense"
    assert torch.equal(predict(x), x.mean((2, 3)))
    monkeypatch.setattr(predictor, "lacking", lambda: "numba is not installed")
    net = pruned()
    predict = Predictor(net)
    exact, dense = exact_and_dense(net, x)
    assert predict.reason == "numba is not installed"
    assert error(predict(x), exact) < 5 * dense + 1e-6


def test_dense_where_most_weights_are_there(monkeypatch):
    net = pruned(sparsity=0.2)
    check(net, images(1)[0])
    monkeypatch.setenv("SUITE_ENGINE", "auto")
    assert "not by zero" in Predictor(net).reason


def test_sparse_by_itself_where_few_weights_are_there(monkeypatch):
    monkeypatch.setenv("SUITE_ENGINE", "auto")
    assert Predictor(pruned(sparsity=0.99)).engine == "sparse"


def test_the_setting_insists(monkeypatch):
    monkeypatch.setenv("SUITE_ENGINE", "dense")
    assert Predictor(pruned()).reason == "SUITE_ENGINE=dense"
