"""ATMC: what each of the four phases moves, keeps and deploys."""

import json

import pytest
import torch
import torch.nn.functional as F

from baselines.atmc import RECIPE, Atmc
from methods.data.load import Data
from methods.pruning.projection import budgets
from methods.training.course import Stopped
from methods.training.loop import train
from methods.training.resume import Resume
from tests.baselines.atmc_toy import CPU, batches, chain, copies, images, ready, spec_of, step


@pytest.fixture(scope="module")
def data() -> Data:
    return images()


def nonzeros(method: Atmc) -> list[int]:
    return [sum(int(t.count_nonzero()) for t in parts.values()) for parts in method.layers.values()]


def test_dense_prunes_nothing(data):
    method = chain(data, "dense")
    before = copies(method.tensors())
    step(method, batches(data)[0], 1)
    assert "k" not in method.report()
    assert sum(nonzeros(method)) == sum(conv.weight.numel() for _, conv in method.net.convs())
    assert all(not torch.equal(t, before[name]) for name, t in method.tensors().items() if name not in ("net.mean", "net.std"))


@pytest.mark.parametrize("phase", ["sparse", "factorised", "quantised"])
def test_exactly_k_entries_survive_each_step_and_others_come_back(data, phase):
    method = chain(data, phase, train__lr=0.1)
    size = sum(conv.weight.numel() for _, conv in method.net.convs())
    supports = []
    for number, batch in enumerate(batches(data, 3), 1):
        step(method, batch, number)
        assert sum(nonzeros(method)) == int(0.1 * size) == method.report()["nonzero_w"] == method.report()["k"]
        supports.append(torch.cat([(t != 0).flatten() for t in method.compressed().values()]))
    assert bool((supports[2] & ~supports[1]).any())  # the mask is free in every phase
    pruned = [method.optimizer.state[t]["momentum_buffer"][t == 0] for t in method.compressed().values()]
    assert int(torch.cat(pruned).count_nonzero()) > method.report()["k"]  # what is at zero goes on gathering momentum


@pytest.mark.parametrize("p", [0.1, 1.0])
def test_layerwise_budgets_are_spent_over_all_factors_of_a_layer(data, p):
    method = chain(data, "factorised", p=p)
    step(method, batches(data)[0], 1)
    assert nonzeros(method) == budgets([conv.weight.numel() for _, conv in method.net.convs()], 0.1, p)


def test_the_factorised_network_starts_as_the_sparse_one(data):
    sparse = chain(data, "sparse")
    step(sparse, batches(data)[0], 1)
    method = Atmc(spec_of("factorised"), data, device=CPU, parent=copies(sparse.tensors()))
    x = batches(data)[0].x
    assert torch.equal(method.net.eval()(x), sparse.net.eval()(x))
    assert len(method.realisation.makers) == len(method.net.convs())


def test_every_factor_is_trained_from_the_first_step(data):
    method = chain(data, "factorised", p=1.0)  # one rate for all layers: none is pruned to death
    assert int(method.layers["stem"]["c"].count_nonzero()) == 0
    loss, _ = method.loss(batches(data)[0], method.draws("x"))
    loss.backward()
    method.pull()
    silent = [name for name, t in method.compressed().items() if not bool(t.grad.any())]
    assert silent == []
    method.push()
    method.optimizer.param_groups[0]["lr"] = 1.0  # so high that some of the new entries are among the largest at once
    for number, batch in enumerate(batches(data), 1):
        step(method, batch, number)
    assert sum(bool(parts["c"].any()) for parts in method.layers.values()) > 5


def test_the_attack_and_both_halves_of_the_loss_move_the_statistics(data):
    for w_clean, forwards in ((0.5, 4), (0, 3)):  # two steps of the attack
        method = chain(data, "dense", options__w_clean=w_clean)
        step(method, batches(data)[0], 1)
        assert int(method.net.stem_norm.num_batches_tracked) == forwards


def test_vanilla_training_is_plain_cross_entropy(data):
    method = chain(data, "dense", eps=0, attack={"name": "none"}, options__w_clean=0)
    batch = batches(data)[0]
    expected = F.cross_entropy(ready(chain(data, "dense")).net.train()(batch.x), batch.y)
    loss, _ = method.loss(batch, method.draws("x"))
    assert torch.isclose(loss, expected)
    assert int(method.net.stem_norm.num_batches_tracked) == 1
    assert [{"eps": 0}, {"options": {"w_clean": 0}}] in RECIPE["when"]


def test_quantised_updates_at_its_batches_only_and_deploys_the_codebooks(data):
    method = chain(data, "quantised", options__quantiser__interval=2)
    assert method.update_due(3)
    assert not any(method.update_due(n) for n in (1, 2, 4, 5))
    start = copies(method.compressed())
    for number, batch in enumerate(batches(data), 1):
        before = copies(method.admm.z), copies(method.admm.u)
        logs = step(method, batch, number)
        assert (float(logs["penalty"]) > 0) == (number > 1)
        same = all(torch.equal(a[n], b[n]) for a, b in zip(before, (method.admm.z, method.admm.u), strict=True) for n in start)
        assert same == (number != 3)
        if number < 3:
            assert all(torch.equal(method.admm.z[name], t) for name, t in start.items())
    report, net = method.report(), method.validated()
    assert max(report["distinct_values_z"]) == 2
    assert report["codebooks"] > 10
    assert report["nonzero_z"] == sum(int(z.count_nonzero()) for z in method.admm.z.values())
    assert 0 < report["one_signed_codebooks"] < 1
    assert 0 < report["distance_w_z"] < 1
    for (layer, conv), norm, own in zip(net.convs(), [*net.norms(), None], [*method.net.norms(), None], strict=True):
        z = {name: method.admm.z[f"{layer}.{name}"] for name in "abc"}
        expected = z["b"] @ z["a"] + z["c"] + (z["b"] if method.realisation.makers[layer].tall else z["a"])
        assert torch.allclose(conv.weight.flatten(1), expected, atol=1e-6)
        assert norm is None or torch.equal(norm.running_mean, own.running_mean)
    assert torch.equal(net.head.bias, method.net.head.bias)
    assert not torch.equal(net.stem.weight, method.net.stem.weight)


def test_without_factors_one_bit_is_two_values_per_layer(data):
    method = chain(data, "quantised", options__factorise=False, options__quantiser__interval=1)
    for number, batch in enumerate(batches(data), 1):
        step(method, batch, number)
    assert not method.realisation.makers
    assert all(conv.weight[conv.weight != 0].unique().numel() <= 2 for _, conv in method.validated().convs())
    assert method.report()["nonzero"] == method.report()["nonzero_z"]


@pytest.mark.parametrize(
    ("batch", "interval", "due"),
    [(4, 10, [11, 21, 35, 45]), (24, 10, [4, 8, 12]), (96, 10, [1, 2, 3]), (48, 1, [2, 4, 6])],
)
def test_batches_are_counted_from_the_start_of_each_epoch(data, batch, interval, due):
    method = chain(data, "quantised", options__quantiser__interval=interval, data__train=96)
    method.spec["train"]["batch"] = batch
    assert [n for n in range(1, due[-1] + 1) if method.update_due(n)] == due


def test_a_stopped_run_goes_on_as_if_nothing_had_happened(data, tmp_path):
    parent = copies(chain(data, "quantised").tensors())

    def run(folder, stop_after: int | None):
        method, calls = Atmc(spec_of("quantised", options__quantiser__interval=2), data, device=CPU, parent=parent), []
        resume = Resume(tmp_path / folder, "key")
        stop = (lambda: calls.append(0) or len(calls) > stop_after) if stop_after else (lambda: False)
        try:
            outcome = train(method, data, resume=resume, stop=stop, save_every=1e9, log=lambda _: None)
        finally:
            if not stop_after:
                resume.clear()
            else:
                resume.lock.release()
        return method, outcome

    with pytest.raises(Stopped):
        run("resumed", 3)
    (ours, again), (undisturbed, outcome) = run("resumed", None), run("whole", None)
    for name, t in undisturbed.tensors().items():
        assert torch.equal(t, ours.tensors()[name]), name
    for part in ("z", "u"):
        assert all(torch.equal(t, getattr(ours.admm, part)[name]) for name, t in getattr(undisturbed.admm, part).items())
    assert again.best["report"] == outcome.best["report"]
    assert again.history == outcome.history
    json.dumps(outcome.best["report"], allow_nan=False)
    assert set(outcome.handed_over) == set(undisturbed.tensors())
