"""The lean training step does what a plain one does: the bench may only compare speeds of equal steps."""

import pytest
import torch

from methods.bench.steps import batch, steps
from methods.bench.train import largest_deviation


@pytest.mark.parametrize(("arch", "width"), [("rn18", 0.125), ("rn34", 0.0625), ("rn50", 0.125)])
def test_both_steps_agree_in_double_precision(arch, width):
    deviation = largest_deviation(arch, 4, width)
    assert deviation["adversarial"] == 0
    assert max(deviation["batch_norm"], deviation["scores"]) < 1e-12


def test_the_step_moves_scores_and_masks():
    """Equal steps would say nothing if neither did anything."""
    _, lean = steps("rn18", torch.float64, 0.125)
    x, y, u = batch(4, torch.float64)
    before = [scores.clone() for scores in lean.scores()]
    weights = [conv.weight.detach().clone() for _, conv in lean.net.convs()]
    adv = lean(x, y, u)
    assert (adv - x).abs().max() > 1 / 255
    assert all((a != b).any() for a, b in zip(before, lean.scores(), strict=True))
    assert any((a != conv.weight).any() for a, (_, conv) in zip(weights, lean.net.convs(), strict=True))
