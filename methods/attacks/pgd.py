"""Training-time attacks, each as the official implementation it comes from really runs it.

All are l_inf, in [0, 1] pixel space, and differentiate with respect to the input only. None switches the network's mode: the caller
decides (`mode`), because that choice decides which statistics batch norm uses and moves.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from methods.data.part import Part, drawn, part_of


@contextmanager
def mode(net: nn.Module, training: bool) -> Iterator[None]:
    """The network in train or eval mode for a while, then as it was."""
    before = net.training
    net.train(training)
    try:
        yield
    finally:
        net.train(before)


def project(moved: Tensor, x: Tensor, eps: float) -> Tensor:
    """Nearest point of the eps-box around x and of [0, 1], for a point near x."""
    return (x + (moved - x).clamp_(-eps, eps)).clamp_(0, 1)


def uniform_start(x: Tensor, eps: float, u: Tensor) -> Tensor:
    """x plus uniform noise of the box, from a uniform [0, 1) draw u, clipped to [0, 1]."""
    return (x + ((2 * u - 1) * eps).clamp_(-eps, eps)).clamp_(0, 1)


def draw_like(x: Tensor, generator: torch.Generator, *, normal: bool = False) -> Tensor:
    """Uniform (or normal) noise of x's shape and memory layout; the numbers do not depend on the layout."""
    make = torch.randn if normal else torch.rand
    shape = x.shape[1:]
    noise = drawn(generator, len(x), lambda n: make((n, *shape), generator=generator, device=x.device, dtype=x.dtype))
    return noise.contiguous(memory_format=torch.channels_last) if x.is_contiguous(memory_format=torch.channels_last) else noise


def loss_and_sign(net: nn.Module, x: Tensor, y: Tensor, part: Part | None = None) -> tuple[Tensor, Tensor]:
    """Cross-entropy per sample and the sign of the input gradient of its mean (over the whole batch where x is a part of one)."""
    x = x.detach().requires_grad_()
    losses = F.cross_entropy(net(x), y, reduction="none")
    (grad,) = torch.autograd.grad(losses.mean() if part is None else losses.sum() / part.total, x)
    return losses.detach(), grad.sign_()


def pgd(
    net: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    eps: float,
    alpha: float,
    steps: int,
    generator: torch.Generator,
    start: str = "uniform",
    pick: str = "worst",
) -> Tensor:
    """PGD on the cross-entropy.

    pick="worst" is the paper's attacker: of the `steps` *evaluated* points (the start among them) each sample takes the one of highest
    loss, of equal ones the first; the point after the last step is never looked at, so the last backward pass is not run. pick="last"
    returns that last point.
    """
    if eps == 0:
        return x
    adv = uniform_start(x, eps, draw_like(x, generator)) if start == "uniform" else x
    part = part_of(generator)
    if pick == "last":
        for _ in range(steps):
            _, sign = loss_and_sign(net, adv, y, part)
            adv = project(adv + alpha * sign, x, eps)
        return adv
    best, best_loss = adv, torch.zeros(len(x), device=x.device)  # a loss of 0 everywhere keeps the start, as in the official code
    for t in range(steps):
        if t + 1 < steps:
            losses, sign = loss_and_sign(net, adv, y, part)
        else:
            with torch.no_grad():
                losses = F.cross_entropy(net(adv), y, reduction="none")
        worse = losses > best_loss
        best = torch.where(worse.view(-1, 1, 1, 1), adv, best)
        best_loss = torch.where(worse, losses, best_loss)
        if t + 1 < steps:
            adv = project(adv + alpha * sign, x, eps)
    return best


def kl_sum(target: Tensor, logits: Tensor) -> Tensor:
    """Sum over the batch of KL(target || softmax(logits))."""
    return F.kl_div(F.log_softmax(logits, 1), target, reduction="sum")


def kl_pgd(net: nn.Module, x: Tensor, *, eps: float, alpha: float, steps: int, generator: torch.Generator) -> Tensor:
    """TRADES' attack: from 0.001 Gaussian noise (not clipped) ascend KL(p(x) || p(x')), last iterate. Call it in eval mode.

    The clean probabilities are constants there and computed once.
    """
    if eps == 0:
        return x
    with torch.no_grad():
        target = F.softmax(net(x), 1)
    adv = x + 0.001 * draw_like(x, generator, normal=True)
    for _ in range(steps):
        adv.requires_grad_()
        (grad,) = torch.autograd.grad(kl_sum(target, net(adv)), adv)
        adv = project(adv.detach() + alpha * grad.sign_(), x, eps)
    return adv
