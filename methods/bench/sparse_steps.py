"""Training steps by the sparse engine against the same steps by torch: of the paper's method, of RST, and under a mask that stays."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from methods.attacks.pgd import kl_pgd, mode, pgd
from methods.bench.networks import pruned
from methods.bench.steps import ALPHA, EPS, STEPS, LeanStep, PlainStep, batch, steps
from methods.bench.turns import as_close, compared
from methods.core.allocation import layer_counts
from methods.networks import init
from methods.networks.resnet import build
from methods.pruning.makers import Scored
from methods.sparse.choice import DENSE, SPARSE, computed_by
from methods.training.losses import forward_with_statistics, trades_loss


class RstStep(LeanStep):
    """RST's: the last point of PGD-7, scores over weights of one size per layer."""

    def loss(self, x: Tensor, y: Tensor, draws: torch.Generator) -> tuple[Tensor, Tensor]:
        adv = pgd(self.net, x, y, eps=EPS, alpha=ALPHA, steps=7, generator=draws, pick="last")
        return F.cross_entropy(self.net(adv), y), adv


class FinetuneStep(LeanStep):
    """The step of HYDRA's last phase: TRADES, weights and batch norms trained under a mask that stays."""

    def loss(self, x: Tensor, y: Tensor, draws: torch.Generator) -> tuple[Tensor, Tensor]:
        clean, update = forward_with_statistics(self.net, x)
        update()
        with mode(self.net, training=False):
            adv = kl_pgd(self.net, x, eps=EPS, alpha=ALPHA, steps=STEPS, generator=draws)
        update()
        adversarial = self.net(adv)
        update()
        return trades_loss(clean, adversarial, y, 6.0)[0], adv


def ours(arch: str, engine: str, width: float = 1.0) -> LeanStep:
    return steps(arch, torch.float32, width, engine)[1]


def rst(arch: str, engine: str, width: float = 1.0) -> LeanStep:
    """One rate in all layers, weights of +-sqrt(2 / fan_in), no last batch norm."""
    draws, net = torch.Generator().manual_seed(1), build(arch, classes=10, width=width)
    shapes = {name: conv.weight.shape for name, conv in net.convs()}
    counts = layer_counts([shape.numel() for shape in shapes.values()], 0.99, 1.0, rule="fixed")
    makers = {
        name: Scored(
            init.weights("signed_constant", shape, draws, stream=(1, name)),
            init.scores("fan_uniform", shape, draws, a=1.0),
            kept,
            train="scores",
        )
        for (name, shape), kept in zip(shapes.items(), counts, strict=True)
    }
    return RstStep(net, makers, engine)


def finetune(arch: str, engine: str, width: float = 1.0) -> LeanStep:
    """Real-valued weights under a random mask of the adaptive counts, affine batch norms, a classifier with a bias."""
    draws, net = torch.Generator().manual_seed(1), build(arch, classes=10, width=width, bn_affine=True, head_bias=True)
    net.head.bias.data.copy_(init.bias(net.head.weight.shape, draws))
    shapes = {name: conv.weight.shape for name, conv in net.convs()}
    counts = layer_counts([shape.numel() for shape in shapes.values()], 0.99, 0.1, rule="adaptive")
    makers = {
        name: Scored(init.weights("kaiming_normal", shape, draws), init.scores("uniform", shape, draws, a=1.0), kept, train="weight")
        for (name, shape), kept in zip(shapes.items(), counts, strict=True)
    }
    return FinetuneStep(net, makers, engine)


def compare_steps(make: Callable[[str], LeanStep], size: int, repeats: int, plain: PlainStep | None = None) -> dict[str, Any]:
    """The step as published (where given), of the suite by torch, and by the engine; gradients of weights are compared first."""
    lean, sparse = make(DENSE), make(SPARSE)
    x, y, u = batch(size, torch.float32)
    _compare_gradients(lean, sparse, x, y)
    calls: dict[str, PlainStep | LeanStep] = {} if plain is None else {"plain": plain}
    calls |= {"lean": lean, "sparse": sparse}
    return compared({name: lambda call=call: call(x, y, u) for name, call in calls.items()}, repeats)


def _compare_gradients(lean: LeanStep, sparse: LeanStep, x: Tensor, y: Tensor) -> None:
    """Stop unless the engine's gradients are as close to those in double precision as torch's are."""
    exact = copy.deepcopy(lean.net).double()
    for net, images, engine in ((exact, x.double(), DENSE), (lean.net, x, lean.engine), (sparse.net, x, sparse.engine)):
        with mode(net, training=True), computed_by(engine, net):
            F.cross_entropy(net(images), y).backward()
    layers = zip(sparse.net.convs(), lean.net.convs(), exact.convs(), strict=True)
    for (name, ours), (_, theirs), (_, true) in layers:
        wanted = sparse.net.places.get(ours, torch.ones(()))  # where a mask stays the engine leaves out the rest
        as_close(f"gradients of {name}", *(layer.weight.grad * wanted for layer in (ours, theirs, true)))
        ours.weight.grad = theirs.weight.grad = None


def training_steps(arch: str, size: int, repeats: int, *, plain: bool, width: float = 1.0) -> dict[str, Any]:
    """A PGD-10 step of the paper's method as published (where asked for), of the suite, and by the engine."""
    published = steps(arch, torch.float32, width)[0] if plain else None
    return compare_steps(lambda engine: ours(arch, engine, width), size, repeats, published)


def lite_steps(size: int, repeats: int) -> dict[str, Any]:
    """RN18 of half the width on 16 x 16 images, PGD of 3 steps: the attack, the step's forward and backward pass, without scores."""
    nets = {"dense": pruned("rn18", width=0.5).requires_grad_(True).train()}
    nets["sparse"] = copy.deepcopy(nets["dense"])
    nets["dense"].to(memory_format=torch.channels_last)
    draws = torch.Generator().manual_seed(2)
    x, y = torch.rand(size, 3, 16, 16, generator=draws), torch.randint(10, (size,), generator=draws)

    def step(name: str) -> None:
        with computed_by(name, nets[name]):
            adv = pgd(nets[name], x, y, eps=EPS, alpha=ALPHA, steps=3, generator=torch.Generator().manual_seed(0))
            loss = F.cross_entropy(nets[name](adv), y)
        nets[name].zero_grad()
        loss.backward()

    return compared({name: lambda name=name: step(name) for name in nets}, repeats)
