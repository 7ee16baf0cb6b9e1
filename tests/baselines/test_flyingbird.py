"""FlyingBird: budgets, schedule, decisions, death and growth by hand, and what must hold while it trains."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from baselines.flyingbird import Decision, FlyingBird, death_rate, decide, is_update, share
from methods.core.allocation import erk_fractions, igq_fractions, start_counts
from methods.core.errors import UserError
from methods.data.load import load
from methods.networks.resnet import build
from methods.pruning.topology import Masked, grown_by_gradient, grown_randomly, survivors
from methods.training.loop import train
from methods.training.resume import Resume
from tests.specs import small

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def data():
    return load("cifar10", source="sample", train=96, val=20)


def shapes_of(arch: str, classes: int = 10) -> list[tuple[int, ...]]:
    with torch.device("meta"):
        net = build(arch, classes=classes)
    return [tuple(conv.weight.shape) for _, conv in net.convs()]


def trained(spec: dict, data, tmp_path) -> SimpleNamespace:
    method = FlyingBird(spec, data, device=CPU)
    outcome = train(method, data, resume=Resume(tmp_path, "x"), log=lambda _: None)
    return SimpleNamespace(method=method, outcome=outcome, makers=method.realisation.makers)


# -- budgets --------------------------------------------------------------------------------------------------------------------------


def test_ideal_gas_quota_of_rn34_is_the_released_one():
    shapes = shapes_of("rn34")
    sizes = [torch.Size(shape).numel() for shape in shapes]
    counts = start_counts(shapes, 0.01, "igq")
    assert sum(sizes) == 21_265_088
    assert sum(counts) == 212_665
    expected = {1728: 1357, 36864: 5399, 8192: 3570, 589824: 6259, 2359296: 6309, 131072: 6035, 5120: 2830}
    for size, count in zip(sizes, counts, strict=True):
        assert abs(count - expected.get(size, count)) <= 1


def test_ideal_gas_quota_gives_every_layer_the_same_resistance():
    sizes = [10, 1000, 100_000]
    resistances = [1 / (size * f) - 1 / size for size, f in zip(sizes, igq_fractions(sizes, 0.05), strict=True)]
    assert resistances == pytest.approx([resistances[0]] * 3, rel=1e-6)
    assert sum(size * f for size, f in zip(sizes, igq_fractions(sizes, 0.05), strict=True)) == pytest.approx(0.05 * 101_010, abs=1)


def test_nothing_is_pruned_at_sparsity_zero():
    assert start_counts([(4, 3), (7, 7)], 1.0, "igq") == [12, 49]


def test_erdos_renyi_keeps_small_layers_whole():
    fractions = erk_fractions([(2, 2), (100, 100)], 0.05)
    assert fractions[0] == 1.0
    assert 4 * fractions[0] + 10_000 * fractions[1] == pytest.approx(0.05 * 10_004)


def test_unknown_names_are_refused(data):
    with pytest.raises(UserError, match="options.distribution: best"):
        start_counts([(2, 2)], 0.5, "best")
    spec = small("flyingbird", options={"growth": "wild"})
    with pytest.raises(UserError, match="options.growth: wild.*random, gradient"):
        FlyingBird(spec, data, device=CPU)


# -- schedule -------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("per_epoch", "updates", "last"), [(352, 68, 69_600), (383, 73, None)])
def test_number_of_updates(per_epoch, updates, last):
    steps = [s for s in range(1, 200 * per_epoch + 1) if is_update(s, per_epoch=per_epoch, epochs=200, every=[900, 1200])]
    assert (len(steps), steps[0]) == (updates, 900)
    assert last in (None, steps[-1])


def test_death_rate_is_a_cosine():
    assert [death_rate(t, 100, 0.5, 0.005) for t in (0, 50, 100)] == pytest.approx([0.5, 0.2525, 0.005])


def test_shares_and_decisions():
    assert share([1.0], 4, or_equal=True) is None
    assert share([1, 2, 2, 1, 2, 3], 4, or_equal=False) == 0.5  # the last four changes are 0, -1, +1, +1
    assert share([1, 2, 2, 1, 2, 3], 4, or_equal=True) == 0.75
    limits = {"start": 3, "window": 4, "threshold": 0.5}
    gaps, losses = [1, 2, 1, 2, 1], [3.0, 2.0, 1.0, 1.0, 0.5]  # half of the gaps rise, a quarter of the losses do not fall
    assert decide(gaps, losses, epoch=3, **limits) == Decision(prune=True, grow=False)
    assert decide(gaps, losses, epoch=2, **limits) == Decision()
    assert decide([1], [1], epoch=9, **limits) == Decision()


# -- death and growth by hand ---------------------------------------------------------------------------------------------------------


def test_the_smallest_die_and_zeros_with_them():
    weight, mask = torch.tensor([0.5, -0.1, 0.3, 0.0, 0.0]), torch.tensor([True, True, True, False, True])
    alive, died = survivors(weight, mask, 0.25)  # one of four: the active zero
    assert (alive.tolist(), died) == ([True, True, True, False, False], 1)
    alive, died = survivors(weight, mask, 0.5)
    assert (alive.tolist(), died) == ([True, False, True, False, False], 2)
    alive, died = survivors(torch.tensor([0.5, 0.0, 0.0, 0.0]), torch.tensor([True, True, True, False]), 0.1)
    assert (alive.tolist(), died) == ([True, False, False, False], 2)  # ceil(0.3) = 1, but neither zero survives


def test_extra_pruning_does_not_raise_the_regrowth():
    weight = torch.tensor([0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    alive, died = survivors(weight, weight > 0, 0.4, extra=0.4)  # ceil(2) of five, and ceil(0.8) more
    assert (alive.tolist(), died) == ([False] * 4 + [True] * 2, 2)


def test_a_full_layer_is_left_alone():
    mask = torch.ones(3, dtype=torch.bool)
    alive, died = survivors(torch.tensor([1.0, 2.0, 3.0]), mask, 0.5)
    assert (alive.tolist(), died) == ([True] * 3, 0)
    assert grown_randomly(mask, 0, torch.zeros(3)).all()


def test_growth_by_hand():
    mask = torch.tensor([True, False, False, False, False])
    assert grown_randomly(mask, 2, torch.tensor([0.9, 0.49, 0.5, 0.1, 0.8])).tolist() == [True, True, False, True, False]
    gradient = torch.tensor([9.0, -3.0, 1.0, 2.0, 0.0])
    assert grown_by_gradient(mask, 2.9, gradient).tolist() == [True, True, False, True, False]
    assert grown_by_gradient(mask, 7, gradient).all()


def test_random_growth_preserves_the_count_in_expectation():
    generator = torch.Generator().manual_seed(0)
    mask = torch.rand(10_000, generator=generator) < 0.01
    grown = [int(grown_randomly(mask, 50, torch.rand(10_000, generator=generator)).sum() - mask.sum()) for _ in range(200)]
    assert sum(grown) / 200 == pytest.approx(50, abs=4 * 50**0.5 / 200**0.5)


def test_regrown_at_once_keeps_value_and_momentum_and_others_lose_them():
    maker = Masked(torch.tensor([1.0, 0.1, 0.2, 5.0]), torch.tensor([True, True, True, False]))
    memory = torch.optim.SGD(maker.parameters(), lr=0.1, momentum=0.9)
    memory.state[maker.weight]["momentum_buffer"] = torch.full((4,), 7.0)
    died, grown = maker.update(0.6, u=torch.tensor([0.0, 0.0, 0.9, 0.1]))  # 0.1 and 0.2 die; the second position regrows, the last is new
    maker.hold(memory)
    assert (died, grown) == (2, 2)
    assert maker.mask.tolist() == [True, True, False, True]
    assert maker.weight.tolist() == pytest.approx([1.0, 0.1, 0.0, 0.0])
    assert memory.state[maker.weight]["momentum_buffer"].tolist() == [7.0, 7.0, 0.0, 7.0]


@pytest.mark.parametrize(("prune", "growth", "net"), [(0, 0, 0), (0.4, 0, -0.4), (0, 0.05, 0.05), (0.4, 0.05, -0.35)])
def test_net_change_of_flyingbird_plus(prune, growth, net):
    generator, rate, active = torch.Generator().manual_seed(1), 0.2, 10_000
    weight = torch.randn(50_000, generator=generator)
    maker = Masked(weight, torch.arange(50_000) < active)
    maker.weight.grad = torch.randn(50_000, generator=generator)
    maker.update(rate, prune=prune, growth=growth, u=None)
    assert int(maker.mask.sum()) - active == pytest.approx(net * rate * active, abs=2)


def test_the_gradient_ignores_the_mask_and_the_weight_does_not():
    maker = Masked(torch.tensor([2.0, -3.0]), torch.tensor([True, False]), binary=True)
    made = maker()
    made.backward(torch.tensor([5.0, 7.0]))
    assert made.tolist() == [1.0, 0.0]
    assert maker.weight.grad.tolist() == [5.0, 7.0]


# -- training -------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("precision", ["fp", "binary"])
@pytest.mark.parametrize("growth", ["random", "gradient"])
def test_masked_means_zero_everywhere(precision, growth, data, tmp_path):
    options = {"growth": growth, "plus": False}
    run = trained(small("flyingbird", arch="rn18", precision=precision, sparsity=0.9, options=options), data, tmp_path)
    report, history = run.outcome.best["report"], run.outcome.history
    assert sum(epoch["updates"] for epoch in history) > 0
    assert sum(epoch["died"] for epoch in history) > 0
    for conv, maker in run.method.realisation.pairs:
        off = ~maker.mask
        assert not conv.weight[off].any()
        assert not maker.weight[off].any()
        moments = [v for v in run.method.optimizer.state[maker.weight].values() if v.shape == off.shape]
        assert len(moments) == (2 if precision == "binary" else 1)
        assert not any(moment[off].any() for moment in moments)
        if precision == "binary":
            assert (conv.weight.abs() == maker.mask).all()
    assert report["density"] == report["nonzero"] / report["weights"]
    assert report["density"] <= report["active_density"] == report["active"] / report["weights"]
    assert history[-1]["active_density"] == pytest.approx(0.1, rel=0.1)
    if growth == "gradient":
        assert len({tuple(epoch["active_per_layer"]) for epoch in history}) == 1
    if precision == "binary":
        assert report["active"] == report["nonzero"]


def test_plus_that_never_starts_is_flyingbird(data, tmp_path):
    spec, runs = small("flyingbird", arch="rn18", sparsity=0.9, options={"growth": "gradient"}, rewrite={"train.epochs": 3}), []
    for options in ({"plus": False}, {"plus": True, "plus_start": 3}, {"plus": True, "plus_start": 0, "plus_threshold": 0}):
        runs.append(trained({**spec, "options": spec["options"] | options}, data, tmp_path / str(len(runs))))
    without, never, always = (run.method.tensors() for run in runs)
    assert all(torch.equal(t, never[name]) for name, t in without.items())
    assert any(not torch.equal(t, always[name]) for name, t in without.items())
    last = [run.outcome.history[-1] for run in runs]
    assert [(epoch["extra_prunes"], epoch["extra_growths"]) for epoch in last] == [(0, 0), (0, 0), (4, 4)]
    assert last[2]["active_density"] < last[1]["active_density"] == last[0]["active_density"]


def test_plus_looks_at_finished_epochs_only(data):
    spec = small("flyingbird", arch="rn18", options={"plus": True})
    method = FlyingBird({**spec, "options": spec["options"] | {"plus_start": 2}}, data, device=CPU)
    record = {"train_acc": 0.5, "val_robust": 0.4, "val_loss": 1.0}
    method.after_epoch(dict(record))
    assert method.decision(2) == Decision()
    method.after_epoch(record | {"train_acc": 0.6})
    assert method.decision(2) == Decision(prune=True, grow=True)
    assert method.decision(1) == Decision()


def test_last_batch_norm_changes_nothing_but_the_logits(data):
    plain, with_lbn = (FlyingBird(small("flyingbird", arch="rn18", lbn=lbn), data, device=CPU).tensors() for lbn in (False, True))
    extra = with_lbn.keys() - plain.keys()
    assert extra
    assert all(name.startswith("net.last_norm.") for name in extra)
    assert all(torch.equal(t, with_lbn[name]) for name, t in plain.items())


def test_settings_per_dataset_and_precision():
    as_is = {"train.epochs": {"times": 1}, "train.batch": {"times": 1}, "validate.steps": {"times": 1}}
    spec = small("flyingbird", dataset="imagenet100", precision="binary", rewrite=as_is)
    assert (spec["attack"]["name"], spec["validate"]["steps"], spec["options"]["plus_start"]) == ("fgsm_atta", 10, 50)
    assert spec["train"] | {"optimizer": "adam", "lr": 1e-4, "schedule": "cosine", "epochs": 100, "batch": 128} == spec["train"]
    spec = small("flyingbird", rewrite=as_is)
    assert spec["train"] | {"optimizer": "sgd", "lr": 0.1, "milestones": [100, 150], "epochs": 200, "batch": 128} == spec["train"]
    assert spec["validate"]["steps"] == 20


def test_settings_scale_with_the_budget():
    spec = small("flyingbird", rewrite={"train.epochs": 20, "train.batch": 128, "data.train": 1960})
    assert spec["options"]["plus_start"] == 10
    share_of_steps = 16 * 20 / (383 * 200)
    assert spec["options"]["update_every"] == [round(900 * share_of_steps), round(1200 * share_of_steps)]
