"""FGSM with transferred perturbations: what is drawn, where it is kept, and one step by hand."""

import pytest
import torch
from torch import nn

from methods.attacks.atta import Atta, Canvas, atta_step, windows
from methods.data.split import generator

EPS = 0.25


def canvas(samples: int, side: int, channels: int = 1) -> Canvas:
    return Canvas(samples, (channels, side, side), EPS, generator=generator(0, "canvas"))


@pytest.mark.parametrize(("side", "offsets"), [(32, 8), (16, 4), (224, 8)])
def test_offsets_and_flips_are_all_drawn_and_no_others(side, offsets):
    """0 to 7 of the nine windows of an image padded by four, as in the official code; half of the windows are mirrored."""
    attacker = Atta(canvas(1, side), eps=EPS, alpha=EPS)
    down, right, flip = attacker.draw(4000, generator(1, "draw"))
    assert down.unique().tolist() == list(range(offsets))
    assert right.unique().tolist() == list(range(offsets))
    assert flip.unique().tolist() == [0, 1]
    assert 0.45 < flip.float().mean().item() < 0.55
    assert not torch.equal(down, right)


def test_the_largest_offset_that_is_drawn_stays_inside_the_canvas():
    rows, columns = windows(torch.tensor([7]), torch.tensor([0]), torch.tensor([0]), 32, 32)
    assert (rows.min().item(), rows.max().item()) == (7, 38)
    assert (columns.min().item(), columns.max().item()) == (0, 31)


def test_a_mirrored_window_reads_its_columns_backwards():
    _, columns = windows(torch.tensor([0, 0]), torch.tensor([1, 1]), torch.tensor([0, 1]), 3, 3)
    assert columns.tolist() == [[1, 2, 3], [3, 2, 1]]


def test_a_pooled_perturbation_is_random_until_its_first_use_and_kept_from_then_on():
    large = canvas(3, 168)
    first = large.read(torch.tensor([0, 1]), generator(0, "read", 1))
    assert first.unique().numel() > 1000, "random at full resolution"
    assert first.abs().max() <= EPS
    assert not torch.equal(first, large.read(torch.tensor([0, 1]), generator(0, "read", 2)))
    full = torch.zeros(1, 1, 176, 176)
    full[:, :, :8, :8] = torch.linspace(0, 0.126, 64).view(8, 8)
    large.write(torch.tensor([1]), full)
    again = large.read(torch.tensor([0, 1]), generator(0, "read", 3))
    assert again[0].unique().numel() > 1000, "not seen yet"
    assert torch.allclose(again[1, 0, :8, :8], torch.full((8, 8), 0.063)), "the mean of its block"
    assert again[1, 0, 8:].abs().max() == 0


def test_all_perturbations_count_as_seen_only_when_every_image_was():
    large = canvas(2, 168)
    for index in (0, 0):
        large.write(torch.tensor([index]), torch.zeros(1, 1, 176, 176))
    assert not large.complete
    assert large.read(torch.tensor([1]), generator(0, "read")).abs().max() > 0
    large.write(torch.tensor([1]), torch.zeros(1, 1, 176, 176))
    large.write(torch.tensor([0]), torch.zeros(1, 1, 176, 176))
    assert large.complete
    assert large.read(torch.tensor([0, 1]), generator(0, "read")).abs().max() == 0


class Row(nn.Module):
    """Two logits, zero and the weighted sum of the pixels."""

    def __init__(self, weight):
        super().__init__()
        self.weight = torch.tensor(weight)

    def forward(self, x):
        value = (x.flatten(1) * self.weight).sum(1)
        return torch.stack([torch.zeros_like(value), value], 1)


def test_a_step_by_hand():
    """A mirrored 1x2 window at the middle of its canvas. For label 0 the loss rises with the logit: towards the sign of each weight."""
    stored = torch.zeros(1, 1, 9, 10)
    stored[0, 0, 4, 4:6] = torch.tensor([0.1, -0.2])
    rows, columns = windows(torch.tensor([4]), torch.tensor([4]), torch.tensor([1]), 1, 2)
    x = torch.tensor([0.5, 0.9]).view(1, 1, 1, 2)
    clean, adv, after = atta_step(Row([1.0, -1.0]), x, torch.tensor([0]), stored, rows=rows, columns=columns, eps=EPS, alpha=0.125)
    assert clean.flatten().tolist() == pytest.approx([0.9, 0.5])
    # Perturbations come mirrored too (-0.2, 0.1); + 0.125 and - 0.125 are inside the box and the range of pixels.
    assert adv.flatten().tolist() == pytest.approx([0.9 - 0.075, 0.5 - 0.025])
    assert after[0, 0, 4, 4:6].tolist() == pytest.approx([-0.025, -0.075]), "written back through the same mirror"
    assert stored[0, 0, 4, 4].item() == pytest.approx(0.1), "the canvas that was read is left alone"


def test_a_step_keeps_to_the_box_and_to_the_range_of_pixels():
    stored = torch.full((1, 1, 9, 10), 0.2)
    rows, columns = windows(torch.tensor([4]), torch.tensor([4]), torch.tensor([0]), 1, 2)
    x = torch.tensor([0.5, 0.9]).view(1, 1, 1, 2)
    _, adv, after = atta_step(Row([1.0, 1.0]), x, torch.tensor([0]), stored, rows=rows, columns=columns, eps=EPS, alpha=0.125)
    assert adv.flatten().tolist() == pytest.approx([0.5 + EPS, 1.0])
    assert after[0, 0, 4, 4:6].tolist() == pytest.approx([EPS, 0.1])
    assert after[0, 0, 3, 4].item() == pytest.approx(0.2), "outside of the window nothing changes"


def test_padding_is_grey():
    rows, columns = windows(torch.tensor([0]), torch.tensor([0]), torch.tensor([0]), 1, 2)
    clean, _, _ = atta_step(
        Row([0.0, 0.0]), torch.zeros(1, 1, 1, 2), torch.tensor([0]), torch.zeros(1, 1, 9, 10), rows=rows, columns=columns, eps=EPS, alpha=0
    )
    assert clean.flatten().tolist() == [0.5, 0.5]
