"""Training steps of the paper's method: as published, and as this project does them.

The plain step does what the published implementation's step does: every forward pass sorts all scores to rebuild the masks, every attack
step computes all gradients and the last one is thrown away, tensors are NCHW.
"""

from __future__ import annotations

import copy

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from methods.attacks.pgd import pgd
from methods.core.allocation import adaptive_counts
from methods.networks.resnet import Net, build, memory_format
from methods.pruning.makers import Realisation, Scored
from methods.sparse.choice import DENSE, computed_by

EPS, ALPHA, STEPS = 8 / 255, 2 / 255, 10
SGD = {"lr": 0.1, "momentum": 0.9, "weight_decay": 5e-4}


class SortedMask(torch.autograd.Function):
    """Mask by a full sort, straight-through gradient."""

    @staticmethod
    def forward(ctx, score: Tensor, kept: int) -> Tensor:
        order = score.flatten().sort().indices
        mask = torch.zeros_like(score).flatten()
        mask[order[len(order) - kept :]] = 1
        return mask.view_as(score)

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None]:
        return grad, None


class PlainConv(nn.Module):
    """A convolution that rebuilds its mask at every forward pass."""

    def __init__(self, conv: nn.Conv2d, scores: Tensor, kept: int):
        super().__init__()
        self.stride, self.padding, self.kept = conv.stride, conv.padding, kept
        self.register_buffer("weight", conv.weight.detach().clone())
        self.scores = nn.Parameter(scores.clone())

    def forward(self, x: Tensor) -> Tensor:
        return F.conv2d(x, self.weight * SortedMask.apply(self.scores.abs(), self.kept), None, self.stride, self.padding)


class PlainStep:
    """The reference: one optimiser step as published."""

    def __init__(self, net: Net, scores: dict[str, Tensor], counts: dict[str, int]):
        self.net = copy.deepcopy(net)
        for name, conv in self.net.convs():
            parent, _, child = name.rpartition(".")
            setattr(self.net.get_submodule(parent), child, PlainConv(conv, scores[name], counts[name]))
        self.net.train()
        self.optimizer = torch.optim.SGD([m.scores for m in self.net.modules() if isinstance(m, PlainConv)], **SGD)

    def __call__(self, x: Tensor, y: Tensor, u: Tensor) -> Tensor:
        adv = (x + ((2 * u - 1) * EPS).clamp(-EPS, EPS)).clamp(0, 1)
        best, best_loss = x.clone(), torch.zeros(len(x), dtype=x.dtype)
        for _ in range(STEPS):
            adv = adv.detach().requires_grad_()
            losses = F.cross_entropy(self.net(adv), y, reduction="none")
            losses.mean().backward()
            worse = (losses > best_loss).to(x.dtype)
            best = best * (1 - worse.view(-1, 1, 1, 1)) + adv.detach() * worse.view(-1, 1, 1, 1)
            best_loss = torch.maximum(best_loss, losses.detach())
            adv = (x + (adv.detach() + ALPHA * adv.grad.sign() - x).clamp(-EPS, EPS)).clamp(0, 1)
        self.optimizer.zero_grad()
        F.cross_entropy(self.net(best), y).backward()
        self.optimizer.step()
        return best

    def scores(self) -> list[Tensor]:
        return [conv.scores.detach() for _, conv in self.net.convs()]


class LeanStep:
    """Ours: the pieces that training uses, put together as the loop does; makers say what is trained, `engine` what computes."""

    def __init__(self, net: Net, makers: dict[str, Scored], engine: str = DENSE):
        self.net, self.makers, self.engine = copy.deepcopy(net), makers, engine
        self.layout = memory_format(self.net)
        self.net.to(memory_format=self.layout).train()
        self.realisation = Realisation(self.net, makers)
        self.realisation.push()
        vectors = [parameter for parameter in self.net.parameters() if parameter.ndim == 1]  # of batch norms, and biases, if any
        trained = [tensor for maker in makers.values() for tensor in maker.parameters() if tensor.requires_grad]
        self.optimizer = torch.optim.SGD(trained + vectors, **SGD)

    def __call__(self, x: Tensor, y: Tensor, u: Tensor) -> Tensor:
        x = x.contiguous(memory_format=self.layout)
        draws = torch.Generator().manual_seed(0)
        self.optimizer.zero_grad()
        with computed_by(self.engine, self.net):
            loss, adv = self.loss(x, y, draws)
        loss.backward()
        self.realisation.pull()
        self.optimizer.step()
        self.realisation.push()
        return adv

    def loss(self, x: Tensor, y: Tensor, draws: torch.Generator) -> tuple[Tensor, Tensor]:
        """The loss, and the adversarial batch that it is of."""
        adv = pgd(self.net, x, y, eps=EPS, alpha=ALPHA, steps=STEPS, generator=draws)
        return F.cross_entropy(self.net(adv), y), adv

    def scores(self) -> list[Tensor]:
        return [maker.scores.detach() for maker in self.makers.values()]


def steps(arch: str, dtype: torch.dtype, width: float = 1.0, engine: str = DENSE) -> tuple[PlainStep, LeanStep]:
    """Both steps on one and the same network: binary weights, r = 0.99, p = 0.1, last batch norm."""
    draws = torch.Generator().manual_seed(1)
    net = build(arch, classes=10, lbn=True, width=width).to(dtype)
    sizes = [conv.weight.numel() for _, conv in net.convs()]
    names = [name for name, _ in net.convs()]
    counts = dict(zip(names, adaptive_counts(sizes, 0.99 if width == 1 else 0.9, 0.1), strict=True))
    scores = {}
    for name, conv in net.convs():
        conv.weight.data = (torch.randint(2, conv.weight.shape, generator=draws) * 2 - 1).to(dtype)
        scores[name] = ((torch.rand(conv.weight.shape, generator=draws, dtype=torch.float64) * 2 - 1) * 0.01).to(dtype)
    makers = {name: Scored(conv.weight.detach().clone(), scores[name].clone(), counts[name], train="scores") for name, conv in net.convs()}
    return PlainStep(net, scores, counts), LeanStep(net, makers, engine)


def batch(size: int, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    draws = torch.Generator().manual_seed(2)
    x = torch.rand(size, 3, 32, 32, generator=draws, dtype=torch.float64).to(dtype)
    y = torch.randint(10, (size,), generator=draws)
    u = torch.rand(x.shape, generator=torch.Generator().manual_seed(0), dtype=dtype)  # the draw that pgd makes
    return x, y, u
