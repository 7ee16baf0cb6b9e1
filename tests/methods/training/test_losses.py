"""Losses: closed forms, saturated logits, and the bookkeeping of repeated forwards."""

import pytest
import torch
import torch.nn.functional as F

from methods.core.architectures import Arch
from methods.networks.resnet import Net
from methods.training.losses import accuracy, forward_with_statistics, trades_loss


def test_trades_loss_of_two_classes_by_hand():
    clean, adversarial = torch.tensor([[0.0, 0.0]]), torch.tensor([[torch.log(torch.tensor(3.0)).item(), 0.0]])
    loss, logs = trades_loss(clean, adversarial, torch.tensor([0]), beta=6)
    # p = (1/2, 1/2), q = (3/4, 1/4): KL = ln(1/2) - (ln(3/4) + ln(1/4)) / 2 = 0.1438
    assert logs["ce"].item() == pytest.approx(0.6931, abs=1e-4)
    assert logs["kl"].item() == pytest.approx(0.1438, abs=1e-4)
    assert loss.item() == pytest.approx(0.6931 + 6 * 0.1438, abs=1e-3)


def test_trades_gradients_agree_with_the_plain_expression_and_survive_saturation():
    clean = torch.randn(4, 5, dtype=torch.float64, requires_grad=True)
    adversarial = torch.randn(4, 5, dtype=torch.float64, requires_grad=True)
    y = torch.tensor([0, 1, 2, 3])
    ours = torch.autograd.grad(trades_loss(clean, adversarial, y, 6)[0], (clean, adversarial))
    plain = F.cross_entropy(clean, y) + 6 / 4 * F.kl_div(F.log_softmax(adversarial, 1), F.softmax(clean, 1), reduction="sum")
    for a, b in zip(ours, torch.autograd.grad(plain, (clean, adversarial)), strict=True):
        assert torch.allclose(a, b)
    large = torch.tensor([[0.0, -300.0], [500.0, 0.0]], requires_grad=True)
    (grad,) = torch.autograd.grad(trades_loss(large, large.detach().flip(1), torch.tensor([0, 0]), 6)[0], large)
    assert torch.isfinite(grad).all()


def test_one_forward_can_update_the_statistics_as_often_as_several():
    torch.manual_seed(0)
    shape = Arch(blocks=(1, 1, 1, 1), channels=(4, 4, 8, 8))
    once, often = Net(shape, classes=3, lbn=True).train(), Net(shape, classes=3, lbn=True).train()
    often.load_state_dict(once.state_dict())
    x, other = torch.rand(4, 3, 32, 32), torch.rand(4, 3, 32, 32)
    logits, update = forward_with_statistics(once, x)
    for name, before in often.named_buffers():
        assert torch.equal(before, once.get_buffer(name)), "the forward itself moves nothing"
    assert torch.equal(logits, often(x))
    update()
    once(other), often(other)
    update(), often(x)
    for name, expected in often.named_buffers():
        assert torch.allclose(once.get_buffer(name), expected, rtol=1e-6, atol=1e-7), name
    logits.sum().backward()  # the graph is intact although the statistics moved


def test_accuracy():
    assert accuracy(torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([0, 1])).item() == 0.5
