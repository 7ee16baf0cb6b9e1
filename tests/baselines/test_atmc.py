"""ATMC: hand-computed projections, codebooks and factors; what each of the four phases moves, keeps and deploys."""

import json
import os
from collections import defaultdict

import pytest
import torch
import torch.nn.functional as F

from baselines.atmc import RECIPE, Atmc
from methods.core.errors import UserError
from methods.core.run_spec import expand, merge
from methods.data.load import Data
from methods.networks.resnet import build
from methods.pruning.admm import Admm
from methods.pruning.codebook import fit, fittable, seed_positions
from methods.pruning.factors import Factorised
from methods.pruning.projection import budgets, keep_largest
from methods.train import load_data
from methods.training.course import Stopped
from methods.training.loop import train
from methods.training.losses import mixed_loss
from methods.training.optim import optimizer
from methods.training.resume import Resume
from tests.specs import small, text
from workflow.suite.planning import recipes, resolve
from workflow.suite.planning.config import ROOT, load_scale

CPU = torch.device("cpu")
LLOYD = {"iterations": 20, "tolerance": 1e-4}


def spec_of(phase: str, **changes) -> dict:
    """The recipe's run of a phase on a toy network and 96 images; `changes` are dotted keys with __ for the dot."""
    toy = {
        "method": "atmc", "version": 2, "phase": phase, "dataset": "cifar10", "eps": "8/255", "seed": 7, "arch": "rn18", "width": 0.0625,
        "data": {"source": "sample", "train": 96, "val": 20}, "attack": {"steps": 2}, "validate": {"steps": 2},
        "train": {"epochs": 2, "batch": 24, "milestones": [1]}, "sparsity": 0.9,
    }  # fmt: skip
    spec = merge(RECIPE["run"], RECIPE["phases"][phase].get("run", {}), toy, expand({k.replace("__", "."): v for k, v in changes.items()}))
    if phase == "quantised":
        spec["options"]["quantiser"].setdefault("interval", 2)
    return spec


@pytest.fixture(scope="module")
def data() -> Data:
    torch.set_num_threads(1)
    return load_data(spec_of("dense"), None)


def step(method: Atmc, batch, number: int) -> dict[str, torch.Tensor]:
    """What the loop does with a batch."""
    draws = method.draws("step", 0, number)
    method.net.train()
    method.optimizer.zero_grad(set_to_none=True)
    loss, logs = method.loss(batch, draws)
    loss.backward()
    method.pull()
    method.optimizer.step()
    method.after_step(number, draws)
    method.push()
    return logs


def ready(method: Atmc) -> Atmc:
    method.optimizer = optimizer(method.trainables(), method.spec["train"])
    return method


def batches(data: Data, count: int = 4):
    return list(data.train.batches(batch=24, seed=7))[:count]


def copies(tensors) -> dict[str, torch.Tensor]:
    return {name: t.detach().clone() for name, t in tensors.items()}


def chain(data: Data, last: str, **changes) -> Atmc:
    """The method at the start of a phase whose predecessors have trained for two steps each."""
    parent = None
    for phase in RECIPE["phases"]:
        method = ready(Atmc(spec_of(phase, **changes), data, device=CPU, parent=parent))
        if phase == last:
            return method
        for number, batch in enumerate(batches(data, 2), 1):
            step(method, batch, number)
        parent = copies(method.tensors())
    raise AssertionError(last)


# -- parts -----------------------------------------------------------------------------------------------------------------------


def test_budgets_of_the_paper_s_network():
    sizes = [conv.weight.numel() for _, conv in build("rn34", classes=10).convs()]
    counted = {  # kept entries of a layer of that size, for p = 0.1, 1 and 0
        1728: (1728, 17, 1728), 5120: (3965, 51, 5120), 8192: (4156, 81, 5880), 32768: (4774, 327, 5880), 36864: (4831, 368, 5880),
        73728: (5178, 737, 5880), 131072: (5485, 1310, 5880), 147456: (5550, 1474, 5880), 294912: (5948, 2949, 5880),
        589824: (6375, 5898, 5880), 1179648: (6833, 11797, 5880), 2359296: (7324, 23595, 5880),
    }  # fmt: skip
    for column, (p, total) in enumerate(((0.1, 212_649), (1.0, 212_650), (0.0, 212_650))):
        found = budgets(sizes, 0.01, p)
        assert sum(found) == total
        by_size = defaultdict(set)
        for size, kept in zip(sizes, found, strict=True):
            by_size[size].add(kept)
        assert {size: min(kept) for size, kept in by_size.items()} == {size: row[column] for size, row in counted.items()}


def test_projection_keeps_the_largest_of_all_tensors_together():
    a, b = torch.tensor([3.0, -0.5]), torch.tensor([[-2.0], [1.0]])
    keep_largest([a, b], 2)
    assert a.tolist() == [3, 0] and b.tolist() == [[-2], [0]]


def test_projection_reaches_a_channels_last_weight():
    weight = torch.arange(24.0).view(2, 3, 2, 2).contiguous(memory_format=torch.channels_last)
    keep_largest([weight], 3)
    assert sorted(weight[weight != 0].tolist()) == [21, 22, 23]


def test_codebook_by_hand():
    values = torch.tensor([1.0, 1.2, -1.0, 0.05])
    book = fit(values, torch.tensor([0, 2]), **LLOYD)
    # 1 and 1.2 share a centre that moves by 0.1; the second iteration moves nothing and ends it
    assert book.assignment.tolist() == [0, 0, 1, 2] and book.iterations == 2
    assert torch.allclose(book.values(values), torch.tensor([1.1, 1.1, -1.0, 0.0]))


def test_codebook_pairs_moved_centres_with_the_assignment_before():
    values = torch.tensor([1.0, 3.9, 4.0, 9.0])
    book = fit(values, torch.tensor([0, 3]), iterations=1, tolerance=1e-4)
    assert book.assignment.tolist() == [0, 0, 0, 1]  # by the seeds 1 and 9
    assert torch.allclose(book.centres, torch.tensor([8.9 / 3, 9.0, 0.0]))
    assert torch.allclose(book.values(values), torch.tensor([8.9 / 3] * 3 + [9.0]))


def test_seeds_of_one_sign_lose_the_other_sign():
    values = torch.tensor([[2.0, -2.0], [1.0, -1.0]])
    assert fit(values, torch.tensor([0, 2]), **LLOYD).values(values).tolist() == [[2, 0], [1, 0]]


def test_a_centre_without_entries_becomes_zero_and_precedes_the_fixed_one():
    book = fit(torch.tensor([2.0, 2.0, 0.1, -0.1]), torch.tensor([0, 1]), **LLOYD)
    assert book.assignment.tolist() == [0, 0, 1, 1]


def test_which_tensors_are_fitted():
    one, two = torch.tensor([1.0, 0.0, 0.0]), torch.tensor([1.0, 2.0, 0.0])
    assert [fittable(one, 2), fittable(two, 2), fittable(two[:2], 2)] == [False, True, False]


def signs(kind: str, levels: int, draws: torch.Generator) -> set[float]:
    weight = torch.randn(4000, generator=draws)
    keep_largest([weight], 400)
    positions = seed_positions(kind, weight, weight, levels, draws)
    assert len(set(positions.tolist())) == levels and bool((weight[positions] != 0).all())
    return set(fit(weight, positions, **LLOYD).values(weight).sign().tolist()) - {0.0}


def test_random_seeds_often_have_one_sign_at_one_bit_only():
    draws = torch.Generator().manual_seed(0)
    one_bit = sum(len(signs("random", 2, draws)) == 1 for _ in range(200))
    assert 70 <= one_bit <= 130
    assert all(len(signs("random", 256, draws)) == 2 for _ in range(3))


def test_sign_aware_seeds_have_both_signs():
    draws = torch.Generator().manual_seed(0)
    assert all(len(signs("sign_aware", 2, draws)) == 2 for _ in range(50))


def test_sign_aware_seeds_take_what_there_is():
    values = torch.tensor([1.0, 2.0, 3.0, 0.0, -4.0])
    found = seed_positions("sign_aware", values, values, 4, torch.Generator().manual_seed(0))
    assert sorted(found.tolist()) == [0, 1, 2, 4]


@pytest.mark.parametrize(("shape", "tall"), [((6, 4, 3, 3), False), ((7, 3, 1, 1), True), ((8, 8, 1, 1), True)])
def test_factors_are_the_layer_they_start_from_and_the_product_they_claim(shape, tall):
    draws = torch.Generator().manual_seed(1)
    dense = torch.randn(shape, generator=draws)
    maker = Factorised(dense)
    assert maker.tall == tall and torch.equal(maker(), dense)
    held = maker.b if tall else maker.a
    assert torch.equal(held.detach(), dense.flatten(1)) and int(maker.c.count_nonzero()) == 0
    with torch.no_grad():
        for parameter in maker.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=draws))
    a, b, c = maker.a.double(), maker.b.double(), maker.c.double()
    eye = torch.eye(len(a)).double()
    expected = b @ (a + eye) + c if tall else (b + eye) @ a + c
    assert torch.allclose(maker().double().flatten(1), expected, atol=1e-5)


def test_loss_mixes_and_forwards_the_clean_batch_last():
    clean, adv, y = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]]), torch.tensor([0])
    order = []
    loss, logs = mixed_loss(lambda x: order.append(x) or x, clean, adv, y, 0.25)
    expected = 0.25 * F.cross_entropy(clean, y) + 0.75 * F.cross_entropy(adv, y)
    assert torch.isclose(loss, expected) and order[0] is adv and order[1] is clean
    assert "ce_clean" not in mixed_loss(lambda x: x, clean, adv, y, 0)[1]


# -- ADMM ------------------------------------------------------------------------------------------------------------------------


def admm(mask: str, w: torch.Tensor) -> Admm:
    return Admm({"w": w}, bits=1, rho=0.1, mask=mask, **LLOYD)


def test_update_by_hand():
    w = torch.tensor([1.0, 1.2, -1.0, 0.0])
    quantiser = admm("none", w)
    assert float(quantiser.penalty()) == 0
    quantiser.update(lambda *_: torch.tensor([0, 2]))
    assert torch.allclose(quantiser.z["w"], torch.tensor([1.1, 1.1, -1.0, 0.0]))
    assert torch.allclose(quantiser.u["w"], torch.tensor([-0.1, 0.1, 0.0, 0.0]), atol=1e-6)
    # W + U - Z is twice W - Z after one update: 0.05 * (0.04 + 0.04)
    assert float(quantiser.penalty()) == pytest.approx(0.004)
    report = quantiser.report()
    assert (report["nonzero_z"], report["distinct_values_z"], report["one_signed_codebooks"]) == (3, [2], 0)
    assert report["distance_w_z"] == pytest.approx(0.02 / 3.44)


@pytest.mark.parametrize(("mask", "left"), [("none", 3), ("unfitted", 1), ("all", 1)])
def test_a_tensor_too_sparse_to_be_fitted(mask, left):
    w = torch.tensor([2.0, 0.0, 0.0, 0.0])
    quantiser = admm(mask, w)
    quantiser.u["w"].copy_(torch.tensor([0.5, 0.25, -0.125, 0.0]))  # gathered while it had more entries
    quantiser.update(lambda *_: pytest.fail("not fitted"))
    assert quantiser.report()["distinct_values_z"] == [left] and quantiser.report()["codebooks"] == 0
    assert float(quantiser.z["w"][0]) == 2.5


@pytest.mark.parametrize(("mask", "outside"), [("none", 1), ("unfitted", 1), ("all", 0)])
def test_entries_outside_the_support_may_get_a_value(mask, outside):
    w = torch.tensor([2.0, -2.0, 0.0, 0.0])
    quantiser = admm(mask, w)
    quantiser.u["w"][2] = 1.9
    quantiser.update(lambda *_: torch.tensor([0, 1]))
    assert int(quantiser.z["w"][2:].count_nonzero()) == outside


# -- phases ----------------------------------------------------------------------------------------------------------------------


def nonzeros(method: Atmc) -> list[int]:
    return [sum(int(t.count_nonzero()) for t in parts.values()) for parts in method.layers.values()]


def test_dense_prunes_nothing(data):
    method = chain(data, "dense")
    before = copies(method.tensors())
    step(method, batches(data)[0], 1)
    assert "k" not in method.report() and sum(nonzeros(method)) == sum(conv.weight.numel() for _, conv in method.net.convs())
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
    assert torch.isclose(loss, expected) and int(method.net.stem_norm.num_batches_tracked) == 1
    assert [{"eps": 0}, {"options": {"w_clean": 0}}] in RECIPE["when"]


def test_quantised_updates_at_its_batches_only_and_deploys_the_codebooks(data):
    method = chain(data, "quantised", options__quantiser__interval=2)
    assert method.update_due(3) and not any(method.update_due(n) for n in (1, 2, 4, 5))
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
    assert max(report["distinct_values_z"]) == 2 and report["codebooks"] > 10
    assert report["nonzero_z"] == sum(int(z.count_nonzero()) for z in method.admm.z.values())
    assert 0 < report["one_signed_codebooks"] < 1 and 0 < report["distance_w_z"] < 1
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
def test_batches_are_counted_anew_in_each_epoch(data, batch, interval, due):
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
                os.close(resume.lock)
        return method, outcome

    with pytest.raises(Stopped):
        run("resumed", 3)
    (ours, again), (undisturbed, outcome) = run("resumed", None), run("whole", None)
    for name, t in undisturbed.tensors().items():
        assert torch.equal(t, ours.tensors()[name]), name
    for part in ("z", "u"):
        assert all(torch.equal(t, getattr(ours.admm, part)[name]) for name, t in getattr(undisturbed.admm, part).items())
    assert again.best["report"] == outcome.best["report"] and again.history == outcome.history
    json.dumps(outcome.best["report"], allow_nan=False)
    assert set(outcome.handed_over) == set(undisturbed.tensors())


# -- the recipe ------------------------------------------------------------------------------------------------------------------


def test_the_last_phase_follows_the_precision():
    chosen = {condition["precision"]: override["phase"] for condition, override in RECIPE["when"] if "precision" in condition}
    assert chosen == {"fp": "factorised", "binary": "quantised"}


def test_rows_share_what_does_not_depend_on_them():
    rows = [{"p": p, "precision": precision} for p in ("global", 0.1) for precision in ("fp", "binary")]
    rows.append({"p": 0.1, "precision": "binary", "options": {"quantiser": {"seeds": "sign_aware"}}})
    runs = {phase: {text(small("atmc", phase=phase, **row)) for row in rows} for phase in RECIPE["phases"]}
    assert {phase: len(found) for phase, found in runs.items() if phase != "quantised"} == {"dense": 1, "sparse": 2, "factorised": 2}
    binary = [row for row in rows if row["precision"] == "binary"]
    assert len({text(small("atmc", phase="quantised", **row)) for row in binary}) == 3


@pytest.mark.parametrize(
    ("dataset", "shared", "phases"),
    [
        (
            "cifar10",
            (128, 0.5, False, "pgd"),
            [(200, [80, 120, 150]), (200, [30, 60, 90, 120]), (200, [60, 80, 120]), (150, [60, 80, 120])],
        ),
        ("cifar100", (256, 0, True, "pgd"), [(200, [80, 120, 150]), (200, [30, 60, 90, 120]), (200, [60, 80, 120]), (150, [60, 80, 120])]),
        ("imagenet100", (256, 0.5, True, "fgsm_atta"), [(50, [20, 30, 38]), (50, [8, 15, 22, 30]), (50, [15, 20, 30]), (50, [20, 27, 40])]),
    ],
)
def test_settings_at_full_scale(dataset, shared, phases, tmp_path):
    recipe, scale = recipes.load_all(ROOT)["atmc"], load_scale("paper")
    for (phase, lr), (epochs, milestones) in zip(zip(RECIPE["phases"], (0.05, 0.01, 0.005, 0.005), strict=True), phases, strict=True):
        cell = {"method": "atmc", "dataset": dataset, "precision": "binary"}
        spec = resolve.resolve(recipe, cell, scale=scale, seed=1, root=tmp_path, phase=phase)
        settings = spec["train"]
        assert (settings["lr"], settings["epochs"], settings["milestones"]) == (lr, epochs, milestones)
        assert (settings["optimizer"], settings["momentum"], settings["weight_decay"]) == ("sgd", 0.9, 1e-4)
        assert (settings["batch"], spec["options"]["w_clean"], spec["normalize"], spec["attack"]["name"]) == shared


def test_every_phase_hands_over_its_best_epoch_and_needs_its_parent(data):
    assert Atmc.hands_over == "best"
    for phase in ("sparse", "factorised", "quantised"):
        with pytest.raises(
            UserError, match=f"phase '{phase}' of method 'atmc' starts from a run of phase '{RECIPE['phases'][phase]['parent']}'"
        ):
            Atmc(spec_of(phase), data, device=CPU)
    with pytest.raises(UserError, match="phase 'dense' of method 'atmc' starts from no other run"):
        Atmc(spec_of("dense"), data, device=CPU, parent={})


@pytest.mark.parametrize(
    ("key", "value", "message"), [("seeds", "lucky", "random, sign_aware"), ("mask", "some", "unfitted"), ("bits", 0, "at least 1")]
)
def test_wrong_options_are_named(data, key, value, message):
    with pytest.raises(UserError, match=message):
        method = chain(data, "quantised", **{f"options__quantiser__{key}": value, "options__quantiser__interval": 1})
        step(method, batches(data)[0], 2)


def test_an_unknown_phase_is_named(data):
    with pytest.raises(UserError, match="dense, sparse, factorised, quantised"):
        Atmc(spec_of("dense") | {"phase": "pruned"}, data, device=CPU)
