"""The paper's method: how many weights its masks keep, per layer and over all layers, while the scores move."""

import torch

from methods.core.allocation import adaptive_counts
from tests.baselines.toy_runs import make
from tests.specs import small


def built(p):
    return make("binary_subnet", small("binary_subnet", arch="rn18", sparsity=0.93, p=p))


def nonzeros(method) -> list[int]:
    return [int(conv.weight.count_nonzero()) for _, conv in method.net.convs()]


def test_global_pruning_keeps_the_whole_budget_and_no_weight_more():
    """7 % of all weights, rounded down: the largest scores wherever they are."""
    method = built("global")
    scores = torch.cat([maker.scores.detach().abs().flatten() for maker in method.realisation.makers.values()])
    budget = len(scores) * 7 // 100
    assert sum(nonzeros(method)) == budget
    threshold = scores.sort(descending=True).values[budget - 1]
    for conv, maker in method.realisation.pairs:
        assert torch.equal(conv.weight != 0, maker.scores.abs() >= threshold)


def test_global_pruning_lets_layers_have_more_or_less():
    method = built("global")
    [first, *_] = method.realisation.makers.values()
    with torch.no_grad():
        first.scores.fill_(1.0)  # above all others
    before = sum(nonzeros(method))
    method.push()
    assert nonzeros(method)[0] == first.scores.numel()
    assert sum(nonzeros(method)) == before


def test_adaptive_pruning_keeps_its_counts_whatever_the_scores():
    method = built(0.1)
    sizes = [conv.weight.numel() for _, conv in method.net.convs()]
    for maker in method.realisation.makers.values():
        with torch.no_grad():
            maker.scores.mul_(torch.rand(maker.scores.shape, generator=torch.Generator().manual_seed(3)))
    method.push()
    assert nonzeros(method) == adaptive_counts(sizes, 0.93, 0.1)
