"""Masks, makers of weights, and initial values: cases of a few elements with answers worked out by hand."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from methods.core.allocation import adaptive_counts, fixed_counts, keep_fraction, kept_count
from methods.core.architectures import Arch
from methods.core.errors import UserError
from methods.networks import init
from methods.networks.resnet import Net, build
from methods.pruning.makers import Realisation, Scored, Signed
from methods.pruning.masks import global_mask, top_mask

FOUR = torch.tensor([0.3, -0.9, 0.1, -0.5]).view(1, 1, 2, 2)


def test_top_mask_of_four():
    assert top_mask(FOUR.abs(), 2).flatten().tolist() == [False, True, False, True]
    assert top_mask(FOUR, 2).flatten().tolist() == [True, False, True, False]
    assert top_mask(FOUR, 0).sum() == 0
    assert top_mask(FOUR, 4).all()


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 300), st.data())
def test_top_mask_keeps_exactly_the_largest(size, data):
    kept = data.draw(st.integers(0, size))
    levels = data.draw(st.sampled_from([3, 10**6]))  # few levels: many ties
    score = torch.randint(levels, (size,), generator=torch.Generator().manual_seed(size)).float()
    mask = top_mask(score, kept)
    assert int(mask.sum()) == kept
    if 0 < kept < size:
        assert score[mask].min() >= score[~mask].max()


def test_top_mask_of_a_channels_last_tensor():
    score = torch.rand(8, 4, 3, 3)
    assert torch.equal(top_mask(score.contiguous(memory_format=torch.channels_last), 50), top_mask(score, 50))


def test_global_mask_takes_the_largest_of_all_layers():
    masks = global_mask([torch.tensor([5.0, 1.0]), torch.tensor([4.0, 3.0, 0.0])], 3)
    assert [m.tolist() for m in masks] == [[True, False], [True, True, False]]


@pytest.mark.parametrize(("sparsity", "keep"), [(0.99, 0.01), (0.9, 0.1), (0.998, 0.002), (0.5, 0.5), (0, 1.0)])
def test_keep_fraction_is_decimal(sparsity, keep):
    assert keep_fraction(sparsity) == keep


@pytest.mark.parametrize("sparsity", [1, 1.5, -0.1])
def test_sparsity_out_of_range(sparsity):
    with pytest.raises(UserError, match="sparsity"):
        keep_fraction(sparsity)


def test_p_out_of_range():
    with pytest.raises(UserError, match=r"'p: 1.5' must be in \[0, 1\]"):
        adaptive_counts([10, 20], 0.5, 1.5)


def test_counts_of_the_headline_network():
    sizes = [conv.weight.numel() for _, conv in build("rn34", classes=10).convs()]
    counts = adaptive_counts(sizes, 0.99, 0.1)
    assert sum(counts) == 212_685
    assert counts[0] == sizes[0] == 1728, "the stem is left whole"
    assert counts[-1] == 3966
    assert sum(fixed_counts(sizes, 0.99)) == 212_669
    assert kept_count(1728, 0.01) == 18  # the paper's text says 17


def test_score_gradient_of_four():
    """dL/ds = dL/dw_eff * w * sign(s), for kept and pruned weights alike; sign(0) = 0."""
    weight = torch.tensor([1.0, -1.0, -1.0, 1.0]).view(1, 1, 2, 2)
    maker = Scored(weight, torch.tensor([0.3, -0.9, 0.0, -0.5]).view(1, 1, 2, 2), 2, train="scores")
    effective = maker()
    assert effective.flatten().tolist() == [0, -1, 0, 1]
    effective.backward(torch.tensor([10.0, 20.0, 30.0, 40.0]).view(1, 1, 2, 2))
    assert maker.scores.grad.flatten().tolist() == [10, 20, 0, -40]
    assert maker.weight.grad is None


def test_weight_gradient_under_a_fixed_mask():
    maker = Scored(FOUR.clone(), FOUR.clone(), 2, train="weight")
    maker().backward(torch.ones(1, 1, 2, 2))
    assert maker.weight.grad.flatten().tolist() == [0, 1, 0, 1]
    assert maker.scores.grad is None


def test_signed_of_four():
    maker = Signed(torch.tensor([0.0, -0.0, -2.0, 3.0]).view(1, 1, 2, 2))
    with torch.no_grad():
        maker.prepare()
    assert maker.latent.flatten().tolist() == [0, 0, -1, 1]
    made = maker()
    assert made.flatten().tolist() == [1, 1, -1, 1]
    made.backward(torch.tensor([1.0, 2.0, 3.0, 4.0]).view(1, 1, 2, 2))
    assert maker.latent.grad.flatten().tolist() == [1, 2, 3, 4], "no gating at the clamp"


def test_latents_of_a_binary_scored_layer_are_clamped_while_they_are_trained():
    """Before they are used, at each push; frozen latents (HYDRA's search) are left as they were handed over."""
    latents = torch.tensor([2.0, -3.0, 0.5, -0.25]).view(1, 1, 2, 2)
    for train, expected in (("weight", [1, -1, 0.5, -0.25]), ("scores", [2, -3, 0.5, -0.25])):
        maker = Scored(latents.clone(), torch.ones(1, 1, 2, 2), 4, train=train, binary=True)
        with torch.no_grad():
            maker.prepare()
        assert maker.weight.flatten().tolist() == expected
    real = Scored(latents.clone(), torch.ones(1, 1, 2, 2), 4, train="weight")
    with torch.no_grad():
        real.prepare()
    assert torch.equal(real.weight, latents), "real-valued weights have no bound"


def test_a_realisation_prepares_its_makers_before_it_writes():
    net = Net(Arch(blocks=(1, 1, 1, 1), channels=(4, 4, 8, 8)), classes=3)
    maker = Scored(torch.full_like(net.stem.weight, 3.0), torch.ones_like(net.stem.weight), 5, train="weight", binary=True)
    Realisation(net, {"stem": maker}).push()
    assert maker.weight.max().item() == 1
    assert int(net.stem.weight.count_nonzero()) == 5


def test_binary_scored_weights_are_ternary():
    maker = Scored(torch.randn(8, 4, 3, 3), torch.randn(8, 4, 3, 3), 30, train="scores", binary=True)
    made = maker()
    assert set(made.unique().tolist()) == {-1, 0, 1}
    assert int(made.count_nonzero()) == 30


def test_realisation_equals_autograd_through_the_network():
    """Pushing weights in and pulling gradients out gives what differentiating through the masks would."""
    torch.manual_seed(0)
    net = Net(Arch(blocks=(1, 1, 1, 1), channels=(4, 4, 8, 8)), classes=3).double()
    makers = {}
    for name, conv in net.convs():
        scores = torch.randn_like(conv.weight)
        makers[name] = Scored(conv.weight.detach().clone(), scores, conv.weight.numel() // 2, train="scores")
    realisation = Realisation(net, makers)
    realisation.push()
    x = torch.rand(4, 3, 32, 32, dtype=torch.float64)
    net(x).square().sum().backward()
    realisation.pull()
    ours = {name: maker.scores.grad.clone() for name, maker in makers.items()}
    for maker in makers.values():
        maker.scores.grad = None
    direct = {f"{name}.weight": maker() for name, maker in makers.items()}
    torch.func.functional_call(net, direct, (x,)).square().sum().backward()
    for name, maker in makers.items():
        assert torch.allclose(ours[name], maker.scores.grad, rtol=1e-9), name


def test_initial_weights_and_scores():
    draws, shape = torch.Generator().manual_seed(0), torch.Size([64, 32, 3, 3])
    assert init.weights("binary", shape, draws, stream=(0, "stem")).unique().tolist() == [-1, 1]
    constant = init.weights("signed_kc", shape, draws, keep=0.01, stream=(0, "stem")).abs().unique()
    assert constant.tolist() == pytest.approx([(2 / (288 * 0.01)) ** 0.5])
    constant = init.weights("signed_constant", shape, draws, keep=0.01, stream=(0, "stem")).abs().unique()
    assert constant.tolist() == pytest.approx([(2 / 288) ** 0.5])
    normal = init.weights("kaiming_normal", shape, draws)
    assert normal.std().item() == pytest.approx((2 / 288) ** 0.5, rel=0.03)
    scores = init.scores("fan_uniform", shape, draws, a=1)
    assert [scores.min().item(), scores.max().item()] == pytest.approx([-(288**-0.5), 288**-0.5], rel=1e-3)
    scores = init.scores("uniform", shape, draws, a=0.01)
    assert [scores.min().item(), scores.max().item()] == pytest.approx([-0.01, 0.01], rel=1e-3)
    with pytest.raises(UserError, match="allowed: binary"):
        init.weights("ternary", shape, draws)
