"""BCS: initial budgets, noise, rewiring by hand, and what must hold while it trains."""

from __future__ import annotations

from math import sqrt

import pytest
import torch

from baselines.bcs import RECIPE, Bcs, start_counts, start_densities, truncated_he
from methods.data.load import load
from methods.networks.resnet import build
from methods.pruning.connections import Connections, connect, requests
from methods.training.loop import train
from methods.training.resume import Resume
from tests.specs import small

CPU = torch.device("cpu")
START = RECIPE["run"]["options"]["start"]


@pytest.fixture(scope="module")
def data():
    return load("cifar10", source="sample", train=96, val=20)


# -- budgets --------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arch", "classes", "budget", "start"),
    [("rn18", 10, 111_643, 88_640), ("rn34", 10, 212_650, 153_516), ("rn50", 10, 234_677, 172_054), ("rn34", 100, 213_111, 181_164)],
)
def test_start_of_the_released_networks(arch, classes, budget, start):
    with torch.device("meta"):
        net = build(arch, classes=classes)
    sizes = [conv.weight.numel() for _, conv in net.convs()]
    assert int(0.01 * sum(sizes)) == budget
    assert sum(start_counts(sizes, start_densities(net, START, 0.01))) == start
    assert sum(start_counts(sizes, start_densities(net, START, 0.01), budget)) == start  # nothing to cap


def test_start_of_rn34_by_stage():
    with torch.device("meta"):
        net = build("rn34", classes=10)
    sizes = [conv.weight.numel() for _, conv in net.convs()]
    counts = start_counts(sizes, start_densities(net, START, 0.01))
    ends = [0, 1, 7, 16, 29, 36, 37]  # stem, four stages, classifier
    assert [sum(counts[a:b]) for a, b in zip(ends, ends[1:], strict=False)] == [1036, 44_232, 5567, 34_076, 65_533, 3072]


def test_a_start_above_the_budget_is_scaled_down():
    assert start_counts([100, 100], [0.6, 0.2]) == [60, 20]
    assert start_counts([100, 100], [0.6, 0.2], 40) == [30, 10]
    assert start_counts([100, 100], [0.6, 0.2], 80) == [60, 20]


def test_magnitudes_are_cut_and_keep_their_variance():
    drawn = truncated_he((64, 16, 3, 3), torch.Generator().manual_seed(0))
    deviation = sqrt(2 / 144)
    assert drawn.std().item() == pytest.approx(deviation, rel=0.02)
    assert drawn.abs().max().item() <= 2 * deviation / 0.8796


# -- one step by hand -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("binary", "weights"), [(False, [0.5, -0.25, 0.0, 0.0]), (True, [1.0, -1.0, 0.0, 0.0])])
def test_sleeping_connections_weigh_nothing_and_learn_nothing(binary, weights):
    made = Connections(torch.tensor([0.5, 0.25, 0.0, -3.0]), torch.tensor([1.0, -1.0, 1.0, 1.0]), binary=binary)
    weight = made()
    weight.backward(torch.tensor([2.0, 3.0, 5.0, 7.0]))
    assert weight.tolist() == weights
    assert made.theta.grad.tolist() == [2.0, -3.0, 0.0, 0.0]


def test_noise_is_for_what_was_active_before_the_step():
    before = torch.tensor([True, True, False, False])
    after_optimiser = torch.tensor([0.1, -0.1, 0.2, -0.2])  # one lived, one died, one woke by momentum, one slept
    noise = torch.tensor([1.0, 3.0, 9.0, 9.0])
    for wake, expected in ((True, [0.2, 0.2, 0.2, -0.2]), (False, [0.2, 0.2, 0.0, -0.2])):
        made = Connections(after_optimiser.clone(), torch.ones(4))
        made.shake(before, noise, 0.1, wake=wake)
        assert made.theta.tolist() == pytest.approx(expected)


def test_rewiring_takes_sleeping_entries_by_rank():
    theta = torch.tensor([0.3, 0.0, -0.1, 0.4, 0.0])
    connect(theta, 2, torch.tensor([0.99, 0.1, 0.7, 0.98, 0.5]), 1e-12)
    small_value = torch.tensor(1e-12).item()
    assert theta.tolist() == [torch.tensor(0.3).item(), 0.0, small_value, torch.tensor(0.4).item(), small_value]
    connect(theta, 5, torch.rand(5), 1e-12)  # more than there are
    assert (theta > 0).all()
    assert theta[3] == torch.tensor(0.4)


def test_layers_are_asked_in_proportion_to_their_size():
    assert requests([1, 2, 1], torch.tensor([0.0, 0.24, 0.25, 0.74, 0.75, 0.99999])) == [2, 2, 2]
    assert requests([1, 2, 1], torch.zeros(0)) == [0, 0, 0]
    drawn = requests([100, 300, 600], torch.rand(100_000, generator=torch.Generator().manual_seed(0)))
    assert drawn == pytest.approx([10_000, 30_000, 60_000], abs=5 * sqrt(25_000))


# -- training -------------------------------------------------------------------------------------------------------------------------


class Watched(Bcs):
    """BCS that writes down, after each step, how many connections there are and how many it replaced."""

    def after_step(self, step: int, draws: torch.Generator) -> None:
        before = {name: conv.weight != 0 for (conv, _), name in zip(self.realisation.pairs, self.realisation.makers, strict=True)}
        velocity = {name: self.velocity(maker) for name, maker in self.realisation.makers.items()}
        super().after_step(step, draws)
        makers = self.realisation.makers.items()
        self.seen = getattr(self, "seen", [])
        self.seen.append(sum(int((maker.theta > 0).sum()) for _, maker in makers))
        self.moved = getattr(self, "moved", 0) + sum(int(((maker.theta > 0) & ~before[name]).sum()) for name, maker in makers)
        assert all(torch.equal(velocity[name], self.velocity(maker)) for name, maker in makers)  # rewiring forgets no velocity

    def velocity(self, maker: Connections) -> torch.Tensor:
        state = self.optimizer.state[maker.theta]
        return state["velocity" if "velocity" in state else "exp_avg"].clone()


@pytest.mark.parametrize("precision", ["fp", "binary"])
@pytest.mark.parametrize("sparsity", [0.9, 0.99])
def test_the_number_of_connections_is_constant_and_signs_never_change(precision, sparsity, data, tmp_path):
    # A large learning rate lets many connections die; at 99 % so narrow a network would start above its budget.
    spec = small("bcs", arch="rn18", precision=precision, sparsity=sparsity, rewrite={"train.lr": 0.5 if precision == "fp" else 0.01})
    method = Watched(spec, data, device=CPU)
    signs = {name: maker.signs.clone() for name, maker in method.realisation.makers.items()}
    outcome = train(method, data, resume=Resume(tmp_path, "x"), log=lambda _: None)
    budget = int(method.keep * sum(method.sizes))
    assert set(method.seen) == {budget}
    assert method.moved > 20
    report = outcome.best["report"]
    assert (report["nonzero"], report["connections"]) == (budget, budget)
    for conv, maker in method.realisation.pairs:
        assert ((conv.weight != 0) == (maker.theta > 0)).all()
        assert (conv.weight * maker.signs >= 0).all()
        if precision == "binary":
            assert conv.weight.abs().max() <= 1
            assert maker.theta.max() <= 1
    assert all(torch.equal(maker.signs, signs[name]) for name, maker in method.realisation.makers.items())
    assert sum(epoch["grown_per_step"] for epoch in outcome.history) > 0
    if precision == "binary":
        assert report["distinct_values"] == 2


def test_a_start_above_the_budget_stays_there_as_released(data, tmp_path):
    spec = small("bcs", arch="rn18", sparsity=0.99, options={"cap_start": False, "wake": True})
    method = Bcs(spec, data, device=CPU)
    before = sum(int((maker.theta > 0).sum()) for maker in method.realisation.makers.values())
    assert before > method.budget
    outcome = train(method, data, resume=Resume(tmp_path, "x"), log=lambda _: None)
    assert all(epoch["grown_per_step"] == 0 for epoch in outcome.history)
    assert outcome.best["report"]["nonzero"] > method.budget


def test_last_batch_norm_changes_nothing_but_the_logits(data):
    plain, with_lbn = (Bcs(small("bcs", arch="rn18", lbn=lbn), data, device=CPU).tensors() for lbn in (False, True))
    assert {name.split(".")[1] for name in with_lbn.keys() - plain.keys()} == {"last_norm"}
    assert all(torch.equal(t, with_lbn[name]) for name, t in plain.items())


def test_settings_per_dataset_and_precision():
    paper = {"width": 1, "train.epochs": {"times": 1}, "train.batch": {"times": 1}}
    spec = small("bcs", rewrite=paper)
    assert spec["train"] | {"optimizer": "sgdw", "lr": 0.1, "weight_decay": 1e-3, "milestones": [100, 150], "epochs": 200} == spec["train"]
    assert spec["attack"]["bn"] == "eval"
    spec = small("bcs", dataset="imagenet100", precision="binary", rewrite=paper)
    assert spec["attack"]["name"] == "fgsm_atta"
    assert spec["train"] | {"optimizer": "adam", "lr": 1e-4, "weight_decay": 5e-4, "schedule": "cosine", "epochs": 100} == spec["train"]
