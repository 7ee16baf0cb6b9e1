"""Projections, codebooks, factors and ADMM, by hand."""

from collections import defaultdict

import pytest
import torch
import torch.nn.functional as F

from methods.networks.resnet import build
from methods.pruning.admm import Admm
from methods.pruning.codebook import fit, fittable, seed_positions
from methods.pruning.factors import Factorised
from methods.pruning.projection import budgets, keep_largest
from methods.training.losses import mixed_loss

LLOYD = {"iterations": 20, "tolerance": 1e-4}


def test_budgets_of_the_paper_s_network():
    sizes = [conv.weight.numel() for _, conv in build("rn34", classes=10).convs()]
    counted = {  # kept entries of a layer of that size, for p = 0.1, 1 and 0
        1728: (1728, 17, 1728), 5120: (3965, 51, 5120), 8192: (4156, 81, 5880), 32768: (4774, 327, 5880), 36864: (4831, 368, 5880),
        73728: (5178, 737, 5880), 131072: (5485, 1310, 5880), 147456: (5550, 1474, 5880), 294912: (5948, 2949, 5880),
        589824: (6375, 5898, 5880), 1179648: (6833, 11797, 5880), 2359296: (7324, 23595, 5880),
    }  # fmt: skip
    for column, (p, total) in enumerate(((0.1, 212_649), (1.0, 212_650), (0.0, 212_650))):
        counts = budgets(sizes, 0.01, p)
        assert sum(counts) == total
        by_size = defaultdict(set)
        for size, kept in zip(sizes, counts, strict=True):
            by_size[size].add(kept)
        assert {size: min(kept) for size, kept in by_size.items()} == {size: row[column] for size, row in counted.items()}


def test_projection_keeps_the_largest_of_all_tensors_together():
    a, b = torch.tensor([3.0, -0.5]), torch.tensor([[-2.0], [1.0]])
    keep_largest([a, b], 2)
    assert a.tolist() == [3, 0]
    assert b.tolist() == [[-2], [0]]


def test_projection_reaches_a_channels_last_weight():
    weight = torch.arange(24.0).view(2, 3, 2, 2).contiguous(memory_format=torch.channels_last)
    keep_largest([weight], 3)
    assert sorted(weight[weight != 0].tolist()) == [21, 22, 23]


def test_codebook_by_hand():
    values = torch.tensor([1.0, 1.2, -1.0, 0.05])
    book = fit(values, torch.tensor([0, 2]), **LLOYD)
    # 1 and 1.2 share a centre that moves by 0.1; the second iteration moves nothing and ends it
    assert book.assignment.tolist() == [0, 0, 1, 2]
    assert book.iterations == 2
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
    assert len(set(positions.tolist())) == levels
    assert bool((weight[positions] != 0).all())
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
    positions = seed_positions("sign_aware", values, values, 4, torch.Generator().manual_seed(0))
    assert sorted(positions.tolist()) == [0, 1, 2, 4]


@pytest.mark.parametrize(("shape", "tall"), [((6, 4, 3, 3), False), ((7, 3, 1, 1), True), ((8, 8, 1, 1), True)])
def test_factors_are_the_layer_they_start_from_and_the_product_they_claim(shape, tall):
    draws = torch.Generator().manual_seed(1)
    dense = torch.randn(shape, generator=draws)
    maker = Factorised(dense)
    assert maker.tall == tall
    assert torch.equal(maker(), dense)
    held = maker.b if tall else maker.a
    assert torch.equal(held.detach(), dense.flatten(1))
    assert int(maker.c.count_nonzero()) == 0
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
    assert torch.isclose(loss, expected)
    assert order[0] is adv
    assert order[1] is clean
    assert "ce_clean" not in mixed_loss(lambda x: x, clean, adv, y, 0)[1]


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
    assert quantiser.report()["distinct_values_z"] == [left]
    assert quantiser.report()["codebooks"] == 0
    assert float(quantiser.z["w"][0]) == 2.5


@pytest.mark.parametrize(("mask", "outside"), [("none", 1), ("unfitted", 1), ("all", 0)])
def test_entries_outside_the_support_may_get_a_value(mask, outside):
    w = torch.tensor([2.0, -2.0, 0.0, 0.0])
    quantiser = admm(mask, w)
    quantiser.u["w"][2] = 1.9
    quantiser.update(lambda *_: torch.tensor([0, 1]))
    assert int(quantiser.z["w"][2:].count_nonzero()) == outside
