"""The engine computes what the network computes: as close to double precision as torch in single precision, for every kind of network."""

from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F

from methods.sparse import backward
from methods.sparse.engine import Engine
from tests.methods.sparse.nets import images, pruned

# network, images, side of the images
KINDS = {
    "rn18": ({}, 20, 16),
    "rn34": ({"arch": "rn34", "width": 0.125}, 16, 16),
    "rn50": ({"arch": "rn50", "sparsity": 0.8}, 17, 16),
    "small": ({"arch": "small_rn18_p10", "width": 1, "sparsity": 0.5}, 5, 32),
    "affine, without last norm": ({"bn_affine": True, "lbn": False}, 33, 16),
    "affine": ({"bn_affine": True}, 8, 16),
    "bias": ({"head_bias": True, "lbn": False}, 3, 16),
    "bias before the last norm": ({"head_bias": True}, 4, 16),
    "real weights": ({"real": True}, 20, 16),
    "dense": ({"sparsity": 0.0, "real": True}, 16, 16),
    "stem for large images": ({"stem": "imagenet", "bn_affine": True}, 6, 64),
    "odd sizes": ({"stem": "imagenet"}, 5, 50),
    "bottlenecks, large images": ({"arch": "rn50", "width": 0.125, "stem": "imagenet", "sparsity": 0.5}, 3, 64),
}


def outcome(call, net, x, y, *, parameters: bool) -> dict[str, torch.Tensor]:
    """Logits, gradients, running statistics."""
    x = x.clone().requires_grad_(not parameters)
    logits = call(x)
    loss = F.cross_entropy(logits, y)
    result = {"logits": logits.detach()}
    if parameters:
        loss.backward()
        result |= {f"gradient of {name}": p.grad for name, p in net.named_parameters()}
    else:
        (result["gradient of images"],) = torch.autograd.grad(loss, x)
    return result | {name: t.clone() for name, t in net.state_dict().items() if "running" in name or "tracked" in name}


def deviation(ours: torch.Tensor, exact: torch.Tensor) -> float:
    """Median over images (channels) of the relative error: a ReLU that rounds to the other side is a large error of one of them."""
    ours, exact = (t.double().reshape(len(t) if t.ndim else 1, -1) for t in (ours, exact))
    return float(((ours - exact).norm(dim=1) / exact.norm(dim=1).clamp(min=1e-3 * exact.norm())).median())


def deviations(kind: str, *, parameters: bool, training: bool, seed: int) -> dict[str, tuple[float, float]]:
    """Of every result: how far the engine and torch are from double precision."""
    options, count, side = KINDS[kind]
    net = pruned(**options, seed=seed).train(training)
    x, y = images(count, side, seed)
    exact, single = copy.deepcopy(net).double(), copy.deepcopy(net)
    reference = outcome(exact, exact, x.double(), y, parameters=parameters)
    dense = outcome(single, single, x, y, parameters=parameters)
    sparse = outcome(Engine(net), net, x, y, parameters=parameters)
    assert {name: t.dtype for name, t in sparse.items()} == {name: t.dtype for name, t in dense.items()}
    if "gradient of head.bias" in sparse and training and net.last_norm is not None:
        assert sparse.pop("gradient of head.bias").abs().max() < 1e-6  # batch statistics take a bias out: zero, but for rounding
    counts = [name for name, t in sparse.items() if not t.is_floating_point()]
    assert all(torch.equal(sparse.pop(name), reference[name]) for name in counts)
    return {name: (deviation(t, reference[name]), deviation(dense[name], reference[name])) for name, t in sparse.items()}


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("parameters", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_as_close_to_double_precision_as_torch(kind, parameters, training):
    """In the best of three draws: with batch statistics, one ReLU on the other side moves everything."""
    draws = [deviations(kind, parameters=parameters, training=training, seed=seed) for seed in (1, 2, 3)]
    for name in draws[0]:
        ours, torchs = (min(draw[name][side] for draw in draws) for side in (0, 1))
        assert ours <= 4 * torchs + 5e-6, name


def test_the_batch_statistics_of_padded_batches_are_those_of_their_images():
    """Seventeen images fill one block and one lane of another: the same statistics as torch's, not those of 32."""
    net = pruned(width=0.125)
    twin = copy.deepcopy(net)
    x, _ = images(17)
    with torch.no_grad():
        Engine(net.train())(x)
        twin.train()(x)
    for ours, theirs in zip(net.norms(), twin.norms(), strict=True):
        assert torch.allclose(ours.running_mean, theirs.running_mean, rtol=1e-4, atol=1e-5)
        assert torch.allclose(ours.running_var, theirs.running_var, rtol=1e-4)
        assert ours.num_batches_tracked == 1


@pytest.mark.parametrize("momentum", [1.0, 0.3, None])
def test_running_statistics_follow_the_momentum(momentum):
    net = pruned(width=0.125)
    for norm in net.norms():
        norm.momentum = momentum
    twin = copy.deepcopy(net)
    engine = Engine(net.train())
    twin.train()
    with torch.no_grad():
        for seed in (1, 2):
            x, _ = images(8, seed=seed)
            engine(x)
            twin(x)
    for ours, theirs in zip(net.norms(), twin.norms(), strict=True):
        assert torch.allclose(ours.running_var, theirs.running_var, rtol=1e-4)


def test_one_image_has_no_batch_statistics():
    net = pruned(width=0.125).train()
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        Engine(net)(torch.rand(1, 3, 16, 16))


def test_only_what_is_asked_for_is_computed(monkeypatch):
    """An attack asks for the images' gradient, a training step for the parameters': neither pays for the other."""
    calls = []

    def gradient(applied, *_):
        calls.append("weight")
        return torch.zeros_like(applied.layer.conv.weight)

    monkeypatch.setattr(backward, "gradient_of_all", gradient)
    net = pruned(width=0.125)
    engine, (x, y) = Engine(net), images(4)
    torch.autograd.grad(F.cross_entropy(engine(x.requires_grad_()), y), x)
    assert calls == []
    F.cross_entropy(engine(x.detach()), y).backward()
    assert len(calls) == len(net.convs())
    assert x.grad is None


def test_gradients_of_both_at_once_and_twice():
    """FAB asks for the gradient of one logit after the other; graphs may also be asked for images and weights together."""
    net = pruned(width=0.125).eval()
    engine, (x, _) = Engine(net), images(4)
    weight = net.blocks[0].convs[0].weight
    ours = engine(x.requires_grad_())
    theirs = net(x)
    for k in (0, 3):
        pair = torch.autograd.grad(ours[:, k].sum(), [x, weight], retain_graph=True)
        expected = torch.autograd.grad(theirs[:, k].sum(), [x, weight], retain_graph=True)
        for a, b in zip(pair, expected, strict=True):
            assert deviation(a, b.double()) < 1e-5


def test_changed_weights_are_seen_and_a_tape_keeps_its_own():
    net = pruned(width=0.125).eval()
    engine, (x, _) = Engine(net), images(4)
    before = engine(x.requires_grad_())
    expected = torch.autograd.grad(net(x).sum(), x)[0]
    with torch.no_grad():
        net.blocks[0].convs[0].weight.mul_(-1)
        after = engine(x)
        assert deviation(after, net(x).double()) < 1e-5
    assert not torch.allclose(before, after)
    assert deviation(torch.autograd.grad(before.sum(), x)[0], expected.double()) < 1e-5


def test_two_tapes_at_once_do_not_share_memory():
    """TRADES keeps the clean pass while it computes the adversarial one."""
    net = pruned(width=0.125).train()
    twin = copy.deepcopy(net)
    engine, (x, y), (z, _) = Engine(net), images(8), images(8, seed=2)
    (F.cross_entropy(engine(x), y) + F.cross_entropy(engine(z), y)).backward()
    (F.cross_entropy(twin(x), y) + F.cross_entropy(twin(z), y)).backward()
    for ours, theirs in zip(net.parameters(), twin.parameters(), strict=True):
        assert deviation(ours.grad, theirs.grad.double()) < 1e-4


def test_one_thread_and_two_give_the_same_bits():
    x, y = images(33)
    results = []
    before = torch.get_num_threads()
    for count in (1, 2, 3):
        torch.set_num_threads(count)
        net = pruned(bn_affine=True, head_bias=True).train()
        try:
            results.append(outcome(Engine(net), net, x, y, parameters=True))
            results[-1]["images"] = outcome(Engine(net.eval()), net, x, y, parameters=False)["gradient of images"]
        finally:
            torch.set_num_threads(before)
    for name, value in results[0].items():
        assert all(torch.equal(value, other[name]) for other in results[1:]), name
