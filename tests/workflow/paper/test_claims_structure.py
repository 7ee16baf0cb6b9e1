"""Claims that are read from networks, learning curves and small proofs, on ones whose answer is known."""

import itertools
import json

import numpy as np
import pytest
from safetensors.numpy import save_file

from methods.core import paths, sealed
from workflow.suite.paper.claims import catalogue, evidence, proofs
from workflow.suite.paper.claims.evidence import MASKED
from workflow.suite.planning import plan

CLAIMS = {item.id: item for item in catalogue.claims()}


@pytest.fixture
def ours(tmp_path):
    return evidence.of_results(plan.load("paper", data_root=tmp_path), tmp_path)


def write_masks(ours, training, first, second):
    """A model file with the one block that masks are read from, and enough of the others to find it."""
    tensors = {f"blocks.{block}.convs.{i}.weight": np.ones((2, 2, 3, 3), np.float32) for block in (0, 3, 7) for i in (0, 1)}
    tensors |= {f"blocks.{block}.projection.weight": np.ones((2, 2, 1, 1), np.float32) for block in (3, 7)}
    tensors["blocks.7.convs.0.weight"] = np.ones((2, 4, 3, 3), np.float32)
    tensors |= {"blocks.8.convs.0.weight": first.astype(np.float32), "blocks.8.convs.1.weight": second.astype(np.float32)}
    path = ours.folder / paths.model(ours.plan.cells[MASKED[training]].runs[0])
    path.parent.mkdir(parents=True)
    save_file(tensors, path)
    sealed.write(path.with_name("train.json"), {"model_sha256": sealed.file_hash(path)})


def test_structured_and_random_masks_are_told_apart(ours):
    draws, channels = np.random.default_rng(0), 40
    alive = np.arange(channels) < 24
    kernels = np.zeros((channels, channels), bool)
    kernels[np.ix_(alive, alive)] = draws.random((24, 24)) < 0.03
    kernels[0, :24], kernels[:24, 0] = True, True
    mask = np.repeat(kernels, 9).reshape(channels, channels, 3, 3)
    ids = ["C73", "C74", "C75", "C76", "C78", "C80", "C81", "C82", "C83"]
    for training in MASKED:
        write_masks(ours, training, mask, mask)
    judgements = {id: CLAIMS[id].judge(ours) for id in ids}
    assert {item.verdict for item in judgements.values()} == {"holds"}, judgements
    assert judgements["C73"].numbers == "40.0 % of input channels empty; 40.0 % of output channels"


def test_forty_percent_are_asked_of_the_inputs_that_the_figure_highlights(ours):
    kernels = np.zeros((40, 40), bool)
    kernels[:, :24] = True  # every output is alive, sixteen of forty inputs are not
    mask = np.repeat(kernels, 9).reshape(40, 40, 3, 3)
    write_masks(ours, "robust", mask, mask)
    assert CLAIMS["C73"].judge(ours).numbers == "40.0 % of input channels empty; 0.0 % of output channels"
    assert CLAIMS["C73"].judge(ours).verdict == "holds"
    assert CLAIMS["C75"].judge(ours).verdict == "fails"


def brute_force_paths(widths, first, second):
    """Every way to keep so many weights of each layer, its paths counted by multiplying the two masks."""
    a, h, b = widths
    best = 0
    for one in itertools.combinations(range(a * h), first):
        upper = np.bincount(one, minlength=a * h).reshape(a, h)
        for two in itertools.combinations(range(h * b), second):
            best = max(best, int((upper @ np.bincount(two, minlength=h * b).reshape(h, b)).sum()))
    return best


@pytest.mark.parametrize("widths", [(2, 2, 2), (1, 2, 3), (2, 1, 3), (1, 3, 2)])
def test_paths_are_those_of_brute_force(widths):
    a, h, b = widths
    for first, second in itertools.product(range(a * h + 1), range(h * b + 1)):
        assert proofs.most_paths(widths, first, second) == brute_force_paths(widths, first, second)


def test_the_network_that_has_more_paths_with_unequal_numbers():
    # 1-2-3, four weights: 2 + 2 have two paths; one weight into one unit and three out of it have three.
    assert proofs.most_paths((1, 2, 3), 2, 2) == 2
    assert proofs.most_paths((1, 2, 3), 1, 3) == 3
    # In 2-2-2 equal numbers have the most, so that network shows nothing.
    assert all(most for most, _ in proofs.splits((2, 2, 2)))


def test_random_masks_have_no_structure(ours):
    draws = np.random.default_rng(1)
    for training in MASKED:
        write_masks(ours, training, *(draws.random((40, 40, 3, 3)) < 0.03 for _ in range(2)))
    assert {id: CLAIMS[id].judge(ours).verdict for id in ("C73", "C74", "C75", "C78", "C80", "C81", "C82", "C83")} == dict.fromkeys(
        ("C73", "C74", "C75", "C78", "C80", "C81", "C82", "C83"), "fails"
    )


def test_stability_is_read_from_learning_curves(ours):
    draws = np.random.default_rng(0)

    def write(noise, epochs):
        for (row, p), (column, best) in (
            (r, c) for r in (("p01", 0.1), ("p05", 0.5), ("p08", 0.8), ("p10", 1.0)) for c in (("r99", 0.1), ("r5", 1.0))
        ):
            path = ours.folder / paths.history(ours.plan.cells[f"sp_ratio.{row}.{column}"].runs[0])
            path.parent.mkdir(parents=True, exist_ok=True)
            spread = noise[p == best]
            path.write_text("".join(json.dumps({"val_robust": 0.4 + spread * draws.normal()}) + "\n" for _ in range(epochs)))
            sealed.write(path.with_name("train.json"), {"history_sha256": sealed.file_hash(path)})

    write({True: 0.001, False: 0.05}, 20)
    assert CLAIMS["C09"].judge(ours).verdict == "holds"
    write({True: 0.05, False: 0.001}, 20)
    assert CLAIMS["C09"].judge(ours).verdict == "fails"
    write({True: 0.001, False: 0.05}, 1)
    judged = CLAIMS["C09"].judge(ours)
    assert (judged.verdict, judged.numbers) == ("not testable at this scale", "only 1 epochs")
