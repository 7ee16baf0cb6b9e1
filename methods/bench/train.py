"""Speed of the training step against a plain one: `python -m methods.bench.train --out FILE`.

The plain step does what the published implementation's step does: every forward pass sorts all scores to rebuild the masks, every attack
step computes all gradients and the last one is thrown away, tensors are NCHW. Both steps are checked to produce the same
adversarial batch, batch-norm statistics and scores, in double precision (in single precision an attack amplifies rounding), then timed by
turns in one process; only ratios are claimed. The share of the matrix-product peak counts direct convolution, so that kernels which need
fewer multiplications can exceed it.
"""

from __future__ import annotations

import argparse
import copy
import json
import statistics
import sys
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from methods.attacks.pgd import mode, pgd
from methods.core.allocation import adaptive_counts
from methods.core.files import write_json
from methods.networks.resnet import Net, build, memory_format
from methods.pruning.makers import Realisation, Scored
from methods.runtime.provenance import provenance

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
    """Ours: the pieces that training uses, put together as the loop does."""

    def __init__(self, net: Net, scores: dict[str, Tensor], counts: dict[str, int]):
        self.net = copy.deepcopy(net)
        self.layout = memory_format(self.net)
        self.makers = {
            name: Scored(conv.weight.detach().clone(), scores[name].clone(), counts[name], train="scores")
            for name, conv in self.net.convs()
        }
        self.net.to(memory_format=self.layout).train()
        self.realisation = Realisation(self.net, self.makers)
        self.realisation.push()
        self.optimizer = torch.optim.SGD([maker.scores for maker in self.makers.values()], **SGD)

    def __call__(self, x: Tensor, y: Tensor, u: Tensor) -> Tensor:
        x = x.contiguous(memory_format=self.layout)
        draws = torch.Generator().manual_seed(0)
        adv = pgd(self.net, x, y, eps=EPS, alpha=ALPHA, steps=STEPS, generator=draws)
        self.optimizer.zero_grad()
        F.cross_entropy(self.net(adv), y).backward()
        self.realisation.pull()
        self.optimizer.step()
        self.realisation.push()
        return adv

    def scores(self) -> list[Tensor]:
        return [maker.scores.detach() for maker in self.makers.values()]


def steps(arch: str, dtype: torch.dtype, width: float = 1.0) -> tuple[PlainStep, LeanStep]:
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
    return PlainStep(net, scores, counts), LeanStep(net, scores, counts)


def batch(size: int, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    draws = torch.Generator().manual_seed(2)
    x = torch.rand(size, 3, 32, 32, generator=draws, dtype=torch.float64).to(dtype)
    y = torch.randint(10, (size,), generator=draws)
    u = torch.rand(x.shape, generator=torch.Generator().manual_seed(0), dtype=dtype)  # the draw that pgd makes
    return x, y, u


def largest_deviation(arch: str, size: int, width: float = 1.0) -> dict[str, float]:
    """Largest differences between the two steps after one step, in double precision."""
    plain, lean = steps(arch, torch.float64, width)
    x, y, u = batch(size, torch.float64)
    adv = (plain(x, y, u) - lean(x, y, u)).abs().max().item()
    pairs = zip(plain.net.norms(), lean.net.norms(), strict=True)
    norms = max((a.running_var - b.running_var).abs().max().item() / a.running_var.abs().max().item() for a, b in pairs)
    moved = zip(plain.scores(), lean.scores(), strict=True)
    return {"adversarial": adv, "batch_norm": norms, "scores": max((a - b).abs().max().item() / a.abs().max().item() for a, b in moved)}


def gemm_peak(seconds: float = 1.0) -> float:
    """This machine's matrix-product speed, in FLOP/s."""
    a = torch.randn(2048, 2048)
    a @ a
    count, started = 0, time.perf_counter()
    while time.perf_counter() - started < seconds:
        a @ a
        count += 1
    return count * 2 * 2048**3 / (time.perf_counter() - started)


def forward_flops(net: Net) -> int:
    """Multiply-adds of one image, times two."""
    total, hooks = [], []
    for _, conv in net.convs():
        hooks.append(conv.register_forward_hook(lambda m, _, out: total.append(2 * m.weight[0].numel() * out[0].numel())))
    with torch.no_grad(), mode(net, training=False):
        net(torch.zeros(1, 3, 32, 32))
    for hook in hooks:
        hook.remove()
    return sum(total)


def measure(arch: str, size: int, repeats: int) -> dict:
    """Times of both steps by turns, and what follows from them."""
    deviation = largest_deviation(arch, 2)
    plain, lean = steps(arch, torch.float32)
    flops = forward_flops(lean.net)
    x, y, u = batch(size, torch.float32)
    lean(x, y, u)
    times: dict[str, list[float]] = {"plain": [], "lean": []}
    for _ in range(repeats):
        for name, step in (("plain", plain), ("lean", lean)):
            started = time.perf_counter()
            step(x, y, u)
            times[name].append(time.perf_counter() - started)
    ratios = [p / q for p, q in zip(times["plain"], times["lean"], strict=True)]
    # Convolution work of a lean step: ten forward, nine input-gradient, then forward and both gradients.
    work = 22 * flops * size
    return {
        "arch": arch,
        "batch": size,
        "deviation": deviation,
        "ratio": {"median": statistics.median(ratios), "min": min(ratios), "max": max(ratios), "n": len(ratios)},
        "seconds": times,
        "share_of_gemm_peak": work / statistics.median(times["lean"]) / gemm_peak(),
    }


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m methods.bench.train", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--archs", nargs="+", default=["rn34", "rn18"])
    parser.add_argument("--batch", type=int, default=128, help="default 128; the smaller it is, the more the plain step's sorting weighs")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(arguments)
    results = [measure(arch, options.batch, options.repeats) for arch in options.archs]
    for result in results:
        ratio = result["ratio"]
        print(
            f"{result['arch']}, batch {result['batch']}: {ratio['median']:.2f}x as fast as the plain step"
            f" (min {ratio['min']:.2f}, max {ratio['max']:.2f}, n {ratio['n']}); {100 * result['share_of_gemm_peak']:.0f} % of the GEMM"
            f" peak; largest deviations {json.dumps(result['deviation'])}"
        )
    write_json(options.out, {"steps": results, "provenance": provenance(torch.device("cpu"))})
    return 0


if __name__ == "__main__":
    sys.exit(main())
