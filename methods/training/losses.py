"""Training losses, and the batch-norm bookkeeping that keeps them number-identical to implementations that forward a batch repeatedly."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from methods.networks.resnet import Net


def running(norm: nn.BatchNorm2d) -> tuple[Tensor, Tensor]:
    """Running mean and variance, which every norm of our networks keeps."""
    assert norm.running_mean is not None
    assert norm.running_var is not None
    return norm.running_mean, norm.running_var


def tracked(norm: nn.BatchNorm2d) -> Tensor:
    """How many batches a norm has seen."""
    assert norm.num_batches_tracked is not None
    return norm.num_batches_tracked


def forward_with_statistics(net: Net, x: Tensor) -> tuple[Tensor, Callable[[], None]]:
    """A train-mode forward that leaves the running statistics alone, and a function that applies its update to them.

    Official TRADES code forwards the clean batch two or three times per step. The logits are equal each time; only the running
    statistics notice. So: one forward, and the update as many times, and at those moments, as the original would.
    """
    norms = net.norms()
    saved, momenta = [tuple(statistic.clone() for statistic in running(n)) for n in norms], [n.momentum for n in norms]
    for n in norms:
        n.momentum = 1.0  # the running statistics become those of this batch
    logits = net(x)
    batch = [tuple(statistic.clone() for statistic in running(n)) for n in norms]
    for n, statistics, momentum in zip(norms, saved, momenta, strict=True):
        # .data: autograd keeps the buffers of the forward for backward, which in train mode does not look at them
        for statistic, before in zip(running(n), statistics, strict=True):
            statistic.data.copy_(before)
        n.momentum = momentum
        tracked(n).sub_(1)

    @torch.no_grad()
    def update() -> None:
        for n, seen in zip(norms, batch, strict=True):
            assert n.momentum is not None
            for statistic, new in zip(running(n), seen, strict=True):
                statistic.data.mul_(1 - n.momentum).add_(new, alpha=n.momentum)
            tracked(n).add_(1)

    return logits, update


def trades_loss(clean: Tensor, adversarial: Tensor, y: Tensor, beta: float) -> tuple[Tensor, dict[str, Tensor]]:
    """Cross-entropy of the clean logits plus beta times the batch mean of KL(p(x) || p(x')); gradients flow through both arguments."""
    ce = F.cross_entropy(clean, y)
    # The target in logarithms: equal in value, but its gradient stays finite where a probability underflows to 0, as the large logits of
    # an untrained +-1 network make it do (the official expression gives NaN there).
    kl = F.kl_div(F.log_softmax(adversarial, 1), F.log_softmax(clean, 1), reduction="sum", log_target=True)
    images = max(len(y), 1)  # a part of a batch may be empty (methods.data.part)
    return ce + beta / images * kl, {"ce": ce.detach(), "kl": kl.detach() / images}


def accuracy(logits: Tensor, y: Tensor) -> Tensor:
    """Share of right answers, on the device."""
    return (logits.argmax(1) == y).float().mean()


def mixed_loss(net: nn.Module, clean: Tensor, adv: Tensor, y: Tensor, w_clean: float) -> tuple[Tensor, dict[str, Tensor]]:
    """w_clean CE(clean) + (1 - w_clean) CE(adv). The clean batch goes last, so the running statistics know it best."""
    logits = net(adv)
    loss = F.cross_entropy(logits, y)
    logs = {"acc": accuracy(logits, y), "ce": loss.detach()}
    if w_clean:
        clean_loss = F.cross_entropy(net(clean), y)
        logs["ce_clean"] = clean_loss.detach()
        loss = w_clean * clean_loss + (1 - w_clean) * loss
    return loss, logs
