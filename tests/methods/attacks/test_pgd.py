"""PGD on networks of one pixel, where every point, loss and choice can be worked out by hand."""

import pytest
import torch
from torch import Tensor, nn

from methods.attacks.pgd import pgd
from methods.data.split import generator

EPS = 0.125


class Pixel(nn.Module):
    """Two logits: zero, and a function of the only pixel. It remembers the points that it was asked about."""

    def __init__(self, logit):
        super().__init__()
        self.logit = logit
        self.asked: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        self.asked.append(x.detach().clone())
        value = self.logit(x.flatten())
        return torch.stack([torch.zeros_like(value), value], 1)


def images(*values: float) -> Tensor:
    return torch.tensor(values).view(-1, 1, 1, 1)


def attack(net: Pixel, x: Tensor, y: list[int], **settings) -> Tensor:
    settings = {"eps": EPS, "alpha": EPS / 2, "steps": 3, "generator": generator(0, "pgd"), **settings}
    return pgd(net, x, torch.tensor(y), **settings)


def test_an_image_whose_loss_is_zero_everywhere_keeps_its_random_start():
    """Logits of a few hundred: the loss underflows to 0 at every point, and no point is worse than the start. The official code begins
    with the start, not with the clean image."""
    net = Pixel(lambda x: -1000 * x)
    adv = attack(net, images(0.5, 0.25, 0.75), [0, 0, 0])
    assert torch.equal(adv, net.asked[0])
    assert ((adv - images(0.5, 0.25, 0.75)).abs() > 0).all()


def test_without_a_random_start_an_image_of_zero_loss_stays_clean():
    net = Pixel(lambda x: -1000 * x)
    assert torch.equal(attack(net, images(0.5), [0], start="none"), images(0.5))


def test_each_image_takes_its_own_worst_point():
    """Loss rises with the pixel for label 0: +alpha, +2 alpha. With three steps the points are 0, alpha and 2 alpha away."""
    net = Pixel(lambda x: 4 * x)
    adv = attack(net, images(0.5, 0.5), [0, 1], start="none")
    assert torch.equal(adv, images(0.5 + EPS, 0.5 - EPS))
    assert len(net.asked) == 3, "the point after the last step is never looked at"


def test_of_equally_bad_points_the_first_is_taken():
    """A logit shaped like a tent whose top is half a step away: the start and the point after one step have the same loss."""
    alpha, top = EPS / 2, 0.5 + EPS / 4
    net = Pixel(lambda x: -16 * (x - top).abs())
    adv = attack(net, images(0.5), [0], start="none", alpha=alpha, steps=2)
    assert [point.item() for point in net.asked] == [0.5, 0.5 + alpha]
    losses = [nn.functional.cross_entropy(net(point), torch.tensor([0])).item() for point in net.asked[:2]]
    assert losses[0] == losses[1], "the two points are equally bad"
    assert adv.item() == 0.5


def test_the_last_point_is_returned_where_it_is_asked_for():
    net = Pixel(lambda x: 4 * x)
    assert torch.equal(attack(net, images(0.5), [0], start="none", pick="last", steps=1), images(0.5 + EPS / 2))


def test_a_step_never_leaves_the_box_or_the_range_of_pixels():
    net = Pixel(lambda x: 4 * x)
    adv = attack(net, images(0.5, 0.95), [0, 0], start="none", pick="last", alpha=1.0)
    assert torch.equal(adv, images(0.5 + EPS, 1.0))


@pytest.mark.parametrize("pick", ["worst", "last"])
def test_radius_zero_is_the_clean_batch(pick):
    net, x = Pixel(lambda x: x), images(0.5)
    assert attack(net, x, [0], eps=0, pick=pick) is x
    assert net.asked == []
