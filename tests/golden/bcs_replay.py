"""BCS on the small network of its recording: attack, gradients, optimiser, noise and rewiring, each from the recorded state before it."""

from __future__ import annotations

import re
from math import inf
from typing import Any

import torch
from torch import Tensor, nn

from baselines import bcs
from methods.networks.resnet import build
from methods.pruning.connections import requests
from tests.golden.bcs_block import PARTS, OneBlock, first_axes, images
from tests.golden.check import Check, rel
from tests.golden.small_nets import Arrays, attacked_as, batch_of, declared, differ, doubles, largest, replayed, started_at

EXACT = 0.0
LEAVES = {"gamma": "weight", "beta": "bias", "bias": "bias", "running_mean": "running_mean", "running_var": "running_var"}


class Sampler:
    """BCS on the recorded network; the draws of an iteration are put in `drawn`."""

    def __init__(self, arrays: Arrays, run: str):
        self.arrays, self.run, self.meta = arrays, run, arrays.meta[run]
        meta, self.drawn = self.meta, ""
        self.layers = {PARTS[name]: name for name in meta["layers"]}
        step = {"steps": meta["attack_steps"], "step": meta["eps_iter"] / meta["eps"]}
        spec = {**bcs.RECIPE["run"], "method": "bcs", "dataset": "cifar10", "seed": 0, "eps": repr(meta["eps"])}
        spec["attack"] = {**spec["attack"], **step}
        spec["sparsity"] = declared(meta["connectivity"])
        spec["options"] = {**spec["options"], "wake": True, "cap_start": False, "noise": 1.0, "new_theta": meta["epsilon_new"]}
        spec["train"] = {"optimizer": "sgdw", "lr": meta["lr0"], "momentum": meta["momentum"], "weight_decay": meta["wd0"], "batch": 8}
        first, middle, last = meta["p_init"]
        parts = {
            "densities": lambda _: [first, *[middle] * (len(self.layers) - 2), last],
            "normal": lambda _, layer, draws: first_axes(arrays[f"{self.drawn}noise/{self.layers[layer]}"]),
            "uniform": lambda method, count, draws: self.chances(method.sizes),
            "keys": lambda _, layer, draws: self.keys(layer),
        }
        self.method = replayed(bcs.Bcs, OneBlock(meta["channels"], meta["classes"]), spec, 8, **parts)
        self.makers = {self.layers[name]: maker for name, maker in self.method.realisation.makers.items()}

    def chances(self, sizes: list[int]) -> Tensor:
        """Uniform draws that fall on the recorded layers."""
        ends = doubles(sizes).cumsum(0)
        return ((ends - doubles(sizes) / 2) / ends[-1])[self.arrays[f"{self.drawn}layer_draw"]]

    def keys(self, layer: str) -> Tensor:
        """Keys that rank the sleeping entries in the recorded order (a permutation of their list)."""
        order, theta = (self.arrays[f"{self.drawn}{kind}/{self.layers[layer]}"] for kind in ("shuffled_candidates", "after_noise"))
        sleeping = (theta.flatten() <= 0).nonzero().flatten()
        keys = torch.zeros(theta.numel(), dtype=torch.float64)
        keys[sleeping[order]] = 1 - torch.arange(1, len(order) + 1, dtype=torch.float64) / (len(order) + 1)
        return first_axes(keys.view(theta.shape))

    def parameters(self) -> dict[str, nn.Parameter]:
        """Everything that is trained, by its recorded name."""
        tensors = {}
        for name in self.meta["params_in_gradient_order"]:
            part, leaf = name.rsplit(".", 1)
            tensors[name] = (
                self.makers[part].theta if leaf == "theta" else getattr(self.method.net.get_submodule(PARTS[part]), LEAVES[leaf])
            )
        return tensors

    def value(self, key: str) -> Tensor:
        """A recorded tensor in our order of axes."""
        array = self.arrays[key]
        return first_axes(array) if array.ndim > 1 else array

    @torch.no_grad()
    def load(self, before: int) -> None:
        """The state after iteration `before` (-1: the start)."""
        at, start = f"{self.run}/i{before}/", before < 0
        for name, parameter in self.parameters().items():
            layer = name.removesuffix(".theta")
            key = f"{self.run}/init/{name}" if start else f"{at}theta/{layer}" if name != layer else f"{at}after_opt/{name}"
            parameter.copy_(self.value(key))
            velocity = torch.zeros_like(parameter) if start else self.value(f"{at}velocity/{name}").clone()
            self.method.optimizer.state[parameter]["velocity"] = velocity
        for name, maker in self.makers.items():
            maker.signs.copy_(self.value(f"{self.run}/sign/{name}"))
        for name, buffer in self.statistics().items():
            buffer.copy_(self.arrays[f"{self.run}/init/{name}" if start else f"{at}bn/{name}"])
        self.method.push()

    def statistics(self) -> dict[str, Tensor]:
        statistics = {}
        for name, part in PARTS.items():
            if "norm" in part and f"{self.run}/init/{name}.running_mean" in self.arrays:
                norm = self.method.net.get_submodule(part)
                statistics |= {f"{name}.{leaf}": getattr(norm, leaf) for leaf in ("running_mean", "running_var")}
        return statistics

    def active(self) -> list[int]:
        return [int((maker.theta > 0).sum()) for maker in self.makers.values()]


def sampler_steps(sampler: Sampler) -> list[Check]:
    arrays, run, meta, method = sampler.arrays, sampler.run, sampler.meta, sampler.method
    x, y = arrays[f"{run}/x"], arrays[f"{run}/y"]
    sizes = [maker.theta.numel() for maker in sampler.makers.values()]
    checks = [
        Check("sizes", differ(sizes, meta["sizes"]), EXACT, run),
        Check("connections at the start", differ(sampler.active(), meta["initial_active"]), EXACT, run),
        Check("connectivity K", abs(method.budget - meta["K"]), EXACT, run),
    ]
    for k, row in enumerate(meta["rows"]):
        sampler.drawn = at = f"{run}/i{k}/"
        sampler.load(k - 1)
        method.optimizer.param_groups[0]["lr"] = row["lr"]
        checks.append(Check("active before", differ(sampler.active(), row["active_before"]), EXACT, at))
        checks += gradient_checks(sampler, images(x[k]), y[k], at)
        for name, parameter in sampler.parameters().items():
            parameter.grad = sampler.value(f"{at}grad/{name}").clone()
        method.optimizer.step()
        for name, parameter in sampler.parameters().items():
            recorded, velocity = sampler.value(f"{at}after_opt/{name}"), method.optimizer.state[parameter]["velocity"]
            checks.append(Check("parameters after the optimiser", rel(parameter.detach(), recorded), 1e-6, f"{at}{name}"))
            checks.append(Check("velocities", rel(velocity, sampler.value(f"{at}velocity/{name}")), 1e-6, f"{at}{name}"))
            parameter.data.copy_(recorded)
        checks.append(Check("active after the optimiser", differ(sampler.active(), row["active_after_opt"]), EXACT, at))
        method.shake(torch.Generator())
        for name, maker in sampler.makers.items():
            recorded = sampler.value(f"{at}after_noise/{name}")
            checks.append(Check("theta after the noise", rel(maker.theta.detach(), recorded), 1e-6, f"{at}{name}"))
            maker.theta.data.copy_(recorded)
        checks.append(Check("active after the noise", differ(sampler.active(), row["active_after_noise"]), EXACT, at))
        before = {name: maker.theta.detach().clone() for name, maker in sampler.makers.items()}
        wanted = requests(sizes, sampler.chances(sizes))
        checks.append(Check("connections missing", abs(sum(wanted) - max(meta["K"] - sum(row["active_after_noise"]), 0)), EXACT, at))
        checks.append(Check("connections asked of each layer", differ(wanted, row["requested_per_layer"]), EXACT, at))
        method.rewire(torch.Generator())
        checks.append(Check("active after rewiring", differ(sampler.active(), row["active_after"]), EXACT, at))
        for name, maker in sampler.makers.items():
            theta = maker.theta.detach()
            new = in_recorded_order(theta != before[name]).nonzero().flatten()
            checks.append(Check("new positions", differ(new, arrays[f"{at}new_position/{name}"].sort().values), EXACT, f"{at}{name}"))
            checks.append(Check("theta after rewiring", differ(theta, sampler.value(f"{at}theta/{name}")), EXACT, f"{at}{name}"))
    sampler.load(len(meta["rows"]) - 1)
    method.net.eval()
    checks.append(Check("logits in eval mode", rel(method.net(images(x[0])).detach(), arrays[f"{run}/eval_logits"]), 2e-4, run))
    return checks + free_steps(Sampler(arrays, run))


def free_steps(sampler: Sampler) -> list[Check]:
    """The same steps in a row, left to themselves; reported, not judged: a sign near 0 decides between life and death."""
    arrays, run, method, checks = sampler.arrays, sampler.run, sampler.method, []
    sampler.load(-1)
    method.net.train()
    for k, row in enumerate(sampler.meta["rows"]):
        sampler.drawn = at = f"{run}/i{k}/"
        method.optimizer.param_groups[0]["lr"] = row["lr"]
        method.optimizer.zero_grad(set_to_none=True)
        with started_at(method, images(arrays[f"{at}start_noise"])):
            loss, _ = method.loss(batch_of(images(arrays[f"{run}/x"][k]), arrays[f"{run}/y"][k]), torch.Generator())
        loss.backward()
        method.pull()
        method.optimizer.step()
        method.after_step(k + 1, torch.Generator())
        method.push()
        for name, maker in sampler.makers.items():
            theta, recorded = maker.theta.detach(), sampler.value(f"{at}theta/{name}")
            checks.append(Check("free: theta", rel(theta, recorded), inf, f"{at}{name}"))
            checks.append(Check("free: connections elsewhere", differ(theta > 0, recorded > 0), inf, f"{at}{name}"))
    return checks


def in_recorded_order(t: Tensor) -> Tensor:
    """One of our weights, flat, as the recording counts its positions."""
    return (t.permute(2, 3, 1, 0) if t.ndim == 4 else t.T).reshape(-1)


def gradient_checks(sampler: Sampler, x: Tensor, y: Tensor, at: str) -> list[Check]:
    """The attack in eval mode, then the gradients and running statistics of a step on the recorded adversarial images."""
    arrays, method = sampler.arrays, sampler.method
    method.net.train()
    recorded = images(arrays[f"{at}x_adv"])
    with started_at(method, images(arrays[f"{at}start_noise"])):
        _, adv = method.adversarial(batch_of(x, y), torch.Generator())
    others = ((adv - recorded).abs() > 1e-6).float().mean().item()
    before = {name: buffer.clone() for name, buffer in sampler.statistics().items()}
    method.optimizer.zero_grad(set_to_none=True)
    with attacked_as(method, recorded):
        loss, _ = method.loss(batch_of(x, y), torch.Generator())
    loss.backward()
    method.pull()
    checks = [Check("share of other adversarial pixels", others, 0.05, at)]
    for name, parameter in sampler.parameters().items():
        ours, recorded = parameter.grad, sampler.value(f"{at}grad/{name}")
        checks.append(Check("gradients", rel(ours, recorded), 2e-4, f"{at}{name}"))
        if name.endswith(".theta"):
            checks.append(Check("gradients of sleeping connections", largest(ours[parameter <= 0]), EXACT, f"{at}{name}"))
    pixels = x.shape[0] * x.shape[2] * x.shape[3]
    for name, buffer in sampler.statistics().items():
        # The recording's variance is the biased one, PyTorch's is not.
        bias = (pixels - 1) / pixels if name.endswith("var") else 1
        ours = 0.9 * before[name] + (buffer - 0.9 * before[name]) * bias
        checks.append(Check("running statistics", rel(ours, arrays[f"{at}bn/{name}"]), 2e-4, f"{at}{name}"))
    return checks


def start_checks(name: str, case: dict[str, Any]) -> list[Check]:
    """Initial budgets of a network of the tables, and where the first rewiring put the connections that were missing."""
    depth, classes, keep = re.fullmatch(r"resnet(\d+)_c(\d+)_p([\d.]+)", name).groups()
    with torch.device("meta"):
        net = build(f"rn{depth}", classes=int(classes))
    sizes = [conv.weight.numel() for _, conv in net.convs()]
    densities = bcs.start_densities(net, bcs.RECIPE["run"]["options"]["start"], float(keep))
    counts = bcs.start_counts(sizes, densities)
    budget = int(float(keep) * sum(sizes))
    missing = max(budget - sum(counts), 0)
    filled = doubles(case["active_after_one_rewire"]) - doubles(counts)
    shares = doubles(sizes) / sum(sizes)
    spread = (filled - missing * shares).abs() / (missing * shares * (1 - shares)).sqrt().clamp(min=1e-9)
    return [
        Check("network: sizes", differ(sizes, case["n"]), EXACT, name),
        Check("network: connections at the start", differ(counts, case["initial_active"]), EXACT, name),
        Check("network: connectivity K", abs(budget - case["K"]), EXACT, name),
        Check("network: first fill", abs(missing - max(case["first_fill_expected"], 0)), EXACT, name),
        Check("network: total after the first fill", abs(sum(counts) + missing - case["total_after_one_rewire"]), EXACT, name),
        Check("network: layers of the first fill, in deviations", spread.max().item(), 5.0, name),
    ]
