"""The paper's theorems and closed forms, checked by brute force, simulation and automatic differentiation."""

from itertools import product
from math import comb, prod

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from methods.core.allocation import adaptive_counts, allocate, keep_fraction
from workflow.suite.paper import theory

layer_sizes = st.lists(st.integers(1, 7), min_size=2, max_size=3)


def optima(sizes: list[int], total: int, value) -> list[tuple[int, ...]]:
    """Every allocation of `total` kept weights that maximises `value`, by enumeration."""
    allocations = [m for m in product(*(range(n + 1) for n in sizes)) if sum(m) == total]
    best = max(map(value, allocations))
    return [m for m in allocations if value(m) == best]


@settings(max_examples=150, deadline=None)
@given(layer_sizes, st.data())
def test_theorem_1_most_subnetworks_at_nearly_equal_rates(sizes, data):
    total = data.draw(st.integers(0, sum(sizes)))
    for m in optima(sizes, total, lambda m: prod(comb(n, k) for n, k in zip(sizes, m, strict=True))):
        for (mj, nj), (mk, nk) in product(zip(m, sizes, strict=True), repeat=2):
            assert abs(mj * nk - mk * nj) < nk + nj  # |mj/nj - mk/nk| < 1/nj + 1/nk, in integers


@settings(max_examples=150, deadline=None)
@given(layer_sizes, st.data())
def test_theorem_2_most_paths_at_nearly_equal_counts(sizes, data):
    total = data.draw(st.integers(len(sizes), sum(sizes)))  # the statement needs a weight in each layer
    for m in optima(sizes, total, prod):
        assert all(mj == nj or mj >= max(m) - 1 for mj, nj in zip(m, sizes, strict=True))


sizes_and_rates = (st.lists(st.integers(20, 4000), min_size=1, max_size=8), st.integers(0, 99), st.integers(0, 10))


@settings(max_examples=200, deadline=None)
@given(*sizes_and_rates)
def test_adaptive_pruning_fills_the_budget(sizes, percent, tenths):
    sparsity, p = percent / 100, tenths / 10
    counts = adaptive_counts(sizes, sparsity, p)
    budget = int(keep_fraction(sparsity) * sum(sizes))
    assert all(0 <= m <= n for m, n in zip(counts, sizes, strict=True))
    # Each layer keeps at most one weight more than its share (the official rounding), and no share is lost to capped layers.
    assert budget - 1 <= sum(counts) <= budget + len(sizes)


@settings(max_examples=200, deadline=None)
@given(*sizes_and_rates)
def test_adaptive_pruning_solves_the_papers_equation_with_caps(sizes, percent, tenths):
    """kept_i / size_i^p is the same for all layers that are not whole, up to the weights that rounding moves."""
    p, keep = tenths / 10, keep_fraction(percent / 100)
    fractions = allocate(sizes, keep, p)
    whole = max((n for n, f in zip(sizes, fractions, strict=True) if f == 1), default=0)
    free = [(n, f * n) for n, f in zip(sizes, fractions, strict=True) if f < 1]
    assert all(n >= whole for n, _ in free), "capped layers are the smallest ones"
    if free:
        constants = [m / n**p for n, m in free]
        slack = sum(1 for _ in free) / min(n**p for n, _ in free)
        assert max(constants) - min(constants) <= slack + 1e-9


def test_four_element_allocations_by_hand():
    # 100 + 300 weights, keep 10 % = 40. p=1: 10 and 30. p=0: 20 and 20. One more each where the pruned share is not whole.
    assert allocate([100, 300], 0.1, 1.0) == pytest.approx([0.1, 0.1])
    assert allocate([100, 300], 0.1, 0.0) == pytest.approx([0.2, 20 / 300])
    # 10 + 390 weights, keep 40: p=0 wants 20 each; the first layer has 10 only, the other takes the remaining 30.
    assert allocate([10, 390], 0.1, 0.0) == pytest.approx([1.0, 30 / 390])


def test_complexity_ratios():
    ratios = theory.Block(kernel=3, size=16, channels_in=128, channels_out=128, sparsity=0.99).ratios()
    assert {name: round(value, 4) for name, value in ratios.items()} == {
        "forward, training": 0.6616,
        "forward, evaluation": 0.5740,
        "backward, training": 0.7065,
    }


def test_complexity_of_the_whole_network():
    """45 % and 32 % are the savings of forward and backward in training (the paper's text calls them training and evaluation)."""
    from methods.networks.resnet import build

    convs = build("rn34", classes=10).convs()[:-1]
    weights = [conv.weight.numel() for _, conv in build("rn34", classes=10).convs()]
    fractions = allocate(weights, 0.01, 0.1)[:-1]
    size, blocks = 32, []
    for (name, conv), fraction in zip(convs, fractions, strict=True):
        if conv.stride[0] == 2 and "projection" not in name:
            size //= 2
        blocks.append(
            theory.Block(
                kernel=conv.kernel_size[0], size=size, channels_in=conv.in_channels, channels_out=conv.out_channels, sparsity=1 - fraction
            )
        )

    def saved(cost) -> float:
        return round(100 * (1 - sum(cost(b, True) for b in blocks) / sum(cost(b, False) for b in blocks)), 2)

    assert saved(lambda b, binary: b.forward(binary=binary, training=True)) == pytest.approx(44.92, abs=0.1)
    assert saved(lambda b, binary: b.backward(binary=binary)) == pytest.approx(31.65, abs=0.1)
    assert saved(lambda b, binary: b.forward(binary=binary, training=False)) == pytest.approx(48.02, abs=0.1)


def test_random_pruning_estimates():
    weights = 3 * 3 * 256 * 256
    estimate = [weights / 9 * theory.kernel_share_estimate(k, weights=weights, sparsity=0.99) for k in (3, 4)]
    assert [round(value, 2) for value in estimate] == [8.19, 0.18]  # the paper's numbers
    exact = [weights / 9 * theory.kernel_share(k, weights=weights, kept=5898) for k in range(5)]
    assert exact == pytest.approx([59868.0, 5442.4, 219.9, 5.18, 0.0784], rel=2e-3)  # which overestimate
    assert theory.kernel_share_estimate(0, weights=weights, sparsity=0.99) == pytest.approx(exact[0] * 9 / weights, rel=1e-3)
    empty = theory.empty_channel_share(channel_weights=9 * 256, weights=weights, kept=5898)
    assert empty == pytest.approx(8.4e-11, rel=0.02)


def test_random_pruning_against_simulation():
    weights, kept, draws = 9 * 400, 200, np.random.default_rng(0)
    counts = np.zeros(10)
    for _ in range(300):
        mask = np.zeros(weights, dtype=int)
        mask[draws.choice(weights, kept, replace=False)] = 1
        counts += np.bincount(mask.reshape(-1, 9).sum(1), minlength=10)
    expected = [400 * 300 * theory.kernel_share(k, weights=weights, kept=kept) for k in range(10)]
    for seen, mean in zip(counts, expected, strict=True):
        assert abs(seen - mean) <= 5 * np.sqrt(mean) + 1


def test_logit_factor():
    assert theory.logit_factor(512, 0.99) == pytest.approx(1.6)
    assert theory.logit_factor(512, 0.0) == pytest.approx(16)  # the paper's 16 needs an unpruned layer
    assert theory.logit_factor(512, 0.998) < 1


def last_layer(alpha: float, *, lbn: bool) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Loss gradients with respect to the logits o and the penultimate features u, last weights scaled by alpha."""
    draws = torch.Generator().manual_seed(0)
    u = torch.randn(6, 5, generator=draws, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(4, 5, generator=draws, dtype=torch.float64)
    mean, std = torch.randn(4, generator=draws, dtype=torch.float64), torch.rand(4, generator=draws, dtype=torch.float64) + 0.5
    label = torch.tensor([0, 1, 2, 3, 0, 1])
    o = alpha * (u @ weight.T)
    logits = (o - alpha * mean) / (alpha * std) if lbn else o
    loss = F.cross_entropy(logits, label, reduction="sum")
    grad_o, grad_u = torch.autograd.grad(loss, (o, u))
    # The closed form: the softmax term carries the index j of the differentiated logit (the paper prints the label c there).
    closed = (F.softmax(logits, 1) - F.one_hot(label, 4)) / (alpha * std if lbn else 1)
    assert torch.allclose(grad_o, closed.detach(), atol=1e-12)
    printed = (F.softmax(logits, 1).gather(1, label[:, None]) - F.one_hot(label, 4)) / (alpha * std if lbn else 1)
    assert not torch.allclose(grad_o, printed.detach(), atol=1e-2)
    return grad_o, grad_u, logits.argmax(1) == label


def test_last_batch_norm_cancels_the_scale():
    grad_o, grad_u, _ = last_layer(1.0, lbn=True)
    scaled_o, scaled_u, _ = last_layer(16.0, lbn=True)
    assert torch.allclose(scaled_o, grad_o / 16)
    assert torch.allclose(scaled_u, grad_u)


def test_without_it_gradients_vanish_or_explode():
    _, grad_u, right = last_layer(1.0, lbn=False)
    _, scaled_u, _ = last_layer(64.0, lbn=False)
    assert right.any()
    assert (~right).any()
    assert (scaled_u[right].norm(dim=1) < grad_u[right].norm(dim=1)).all()
    assert (scaled_u[~right].norm(dim=1) > 10 * grad_u[~right].norm(dim=1)).all()
