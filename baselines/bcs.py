"""BCS: Bayesian connectivity sampling, training of a sparse network whose connections are re-drawn all the time.

Ozan Ozdenizci, Robert Legenstein: Training Adversarially Robust Sparse Networks via Bayesian Connectivity Sampling, ICML 2021. A weight is
a fixed random sign times a trained theta where theta > 0, else it sleeps. After every step the connections that died are replaced by as
many sleeping ones, drawn over all layers, so that their number stays constant. What is done here is what the released code does: no
prior and no temperature, only a very small noise, without which connections at dead units would never be replaced.

Of `train.compute: bf16` only the convolutions take part. Thetas, the noise on them (1e-6 of the learning rate) and the value of new ones
(1e-12) stay in float32: bfloat16 would round the noise away, and with it the replacement of connections that no gradient reaches.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod, sqrt
from typing import Any

import torch
from torch import Tensor, nn

from methods.core.architectures import shape_of
from methods.core.errors import UserError
from methods.networks.init import fan_in, random_signs
from methods.networks.resnet import Net
from methods.pruning.connections import Connections, connect, requests
from methods.training.declared import Counts
from methods.training.method import Method

RECIPE = {
    "version": 2,
    "name": "BCS",
    "cites": "Ozdenizci and Legenstein, ICML 2021",
    "run": {
        # The released code has a classifier bias and no input normalisation; here as for all methods of the paper's tables.
        "arch": "rn34",
        "lbn": False,
        "bn_affine": True,
        "normalize": True,
        "head_bias": False,
        "precision": "fp",
        "sparsity": 0.99,
        "attack": {"name": "pgd", "steps": 10, "step": 0.25, "start": "uniform", "pick": "last", "bn": "eval"},
        "validate": {"steps": 10, "step": 0.25},
        "train": {
            "optimizer": "sgdw",
            "lr": 0.1,
            "momentum": 0.9,
            # Of the only released ResNet script; the program's default is 5e-4. Decoupled, and not multiplied by the learning rate.
            "weight_decay": 1e-3,
            "schedule": "steps",
            "milestones": [100, 150],
            "epochs": 200,
            "batch": 128,
        },
        "options": {
            "augment": "shift_flip",  # official: up to a tenth of the side, edges repeated
            # Densities of the start, set by hand in the released code; those of stages 2 to 4 are a multiple of the kept fraction.
            "start": {"stem": 0.6, "stage1": 0.2, "rest": 0.5, "head": 0.6},
            # Scale down these densities together where they exceed the kept fraction (narrow networks). The released code would start,
            # and for long stay, above it.
            "cap_start": True,
            # Standard deviation of the noise, times the learning rate, on the connections that were active before the step.
            "noise": 1e-6,
            "new_theta": 1e-12,
            # Whether momentum may carry a sleeping connection over zero without its being drawn. Released: yes, and the budget is then
            # exceeded for a while. Here the declared number of connections always holds.
            "wake": False,
        },
    },
    "when": [
        [
            {"dataset": "imagenet100"},
            {
                "attack": {"name": "fgsm_atta", "step": 0.5},
                "train": {"epochs": 100, "milestones": [50, 75]},
                "options": {"augment": None},
            },
        ],
        [{"attack.name": "fgsm_atta"}, {"attack": {"step": 0.5}, "options": {"augment": None}}],  # which augments by itself
        # BinaryConnect "with the settings of adversarial training".
        [
            {"precision": "binary"},
            {
                "train": {
                    "optimizer": "adam",
                    "lr": 1e-4,
                    "momentum": None,
                    "weight_decay": 5e-4,
                    "schedule": "cosine",
                    "milestones": None,
                }
            },
        ],
    ],
    "deviations": [
        ["framework", "TensorFlow: one-sided padding of strides, biased variances", "PyTorch's", "no other difference of weight"],
        ["network", "a classifier bias, no input normalisation", "no bias, normalised", "as for all methods of the tables"],
        ["epochs", "200; the paper: 400 unless specified", "200", "baselines keep their settings, says the paper"],
        ["decay", "5e-4 by default, 1e-3 in the only script of a ResNet", "1e-3", "the nearest to what the paper ran"],
        [
            "selection",
            "by clean accuracy, on test images",
            "by robust accuracy, on held-out ones; 'validate.by: clean'",
            "the paper compares robustness",
        ],
        ["densities of the start", "above the kept fraction in narrow networks", "scaled down ('cap_start')", "the declared sparsity"],
        ["sleeping connections", "momentum may wake them, beyond the budget", "only a draw does ('wake')", "the declared sparsity"],
        ["binary network", "none; the paper: as binary AT", "signs of what is awake; thetas by Adam", "signs are never trained here"],
        ["batch of the binary network", "512, as binary AT has", "128, as in full precision", "connections are drawn at each step"],
        ["ImageNet-100", "none", "FGSM+ATTA, 100 epochs, scaled milestones", "the paper's attack and epochs"],
    ],
}


def truncated_he(shape: Sequence[int], generator: torch.Generator) -> Tensor:
    """He-normal as Keras draws it: cut at two standard deviations, and widened so that the variance is 2 / fan_in nevertheless."""
    deviation = sqrt(2 / fan_in(shape)) / 0.87962566103423978
    return nn.init.trunc_normal_(torch.empty(shape), 0, deviation, -2 * deviation, 2 * deviation, generator=generator)


def start_densities(net: Net, start: dict[str, float], keep: float) -> list[float]:
    """Density of each layer at the start, from those of the stem, the first stage, the other stages (times keep) and the classifier."""
    first_stage = shape_of(net.arguments["arch"], net.arguments["width"]).blocks[0]

    def density(name: str) -> float:
        if name in ("stem", "head"):
            return start[name]
        return start["stage1"] if int(name.split(".")[1]) < first_stage else start["rest"] * keep

    return [density(name) for name, _ in net.convs()]


def start_counts(sizes: Sequence[int], densities: Sequence[float], budget: int | None = None) -> list[int]:
    """Active connections per layer at the start; with a budget, scaled down together where they exceed it."""
    counts = [int(density * size) for size, density in zip(sizes, densities, strict=True)]
    if budget is None or sum(counts) <= budget:
        return counts
    return [count * budget // sum(counts) for count in counts]


class Bcs(Method):
    """Fixed signs, trained magnitudes, and a constant number of connections."""

    def __init__(self, *arguments: Any, **settings: Any):
        super().__init__(*arguments, **settings)
        self.grown = 0  # connections drawn in the epoch at work

    def initialise(self) -> None:
        draws = self.draws("weights")
        for _, conv in self.net.convs():
            conv.weight.data.copy_(truncated_he(conv.weight.shape, draws))
        if (bias := self.net.head.bias) is not None:
            bias.data.zero_()

    def makers(self) -> dict[str, nn.Module]:
        convs, draws = self.net.convs(), self.draws("mask")
        self.sizes = [conv.weight.numel() for _, conv in convs]
        self.budget = int(self.keep * sum(self.sizes))
        cap = self.budget if self.options["cap_start"] else None
        made = {}
        for (name, conv), count in zip(convs, start_counts(self.sizes, self.densities(), cap), strict=True):
            shape = conv.weight.shape
            mask = torch.zeros(prod(shape))
            mask[torch.randperm(len(mask), generator=draws)[:count]] = 1
            theta = conv.weight.detach().abs() * mask.view(shape)
            made[name] = Connections(theta, random_signs(self.seed, name, shape), binary=self.spec["precision"] == "binary")
        return made

    def declared_counts(self, sizes: list[int]) -> Counts:
        """The number of connections, which move between layers; none where sleeping ones may wake, since they are then too many."""
        if "p" in self.spec:
            raise UserError(f"'p: {self.spec['p']}' is not possible for bcs, whose layers share their connections; remove 'p' from the run")
        return None if self.options["wake"] else self.budget

    def densities(self) -> list[float]:
        """Density of each layer at the start."""
        return start_densities(self.net, self.options["start"], self.keep)

    def after_step(self, step: int, draws: torch.Generator) -> None:
        self.shake(draws)
        self.rewire(draws)

    def shake(self, draws: torch.Generator) -> None:
        """Add the noise."""
        lr = self.optimizer.param_groups[0]["lr"]
        for (conv, maker), layer in zip(self.realisation.pairs, self.realisation.makers, strict=True):
            active = conv.weight != 0  # the network still holds the weights before the step
            maker.shake(active, self.options["noise"] * self.normal(layer, draws), lr, wake=self.options["wake"])

    def rewire(self, draws: torch.Generator) -> None:
        """Replace what died. The layers' shares may move: this is the one baseline that reallocates. Waits twice for the device."""
        makers = self.realisation.makers
        active = torch.stack([(maker.theta > 0).sum() for maker in makers.values()]).tolist()
        missing = max(self.budget - sum(active), 0)
        wanted = requests(self.sizes, self.uniform(missing, draws))
        for (layer, maker), count, size, awake in zip(makers.items(), wanted, self.sizes, active, strict=True):
            if count:
                connect(maker.theta, count, self.keys(layer, draws), self.options["new_theta"])
                self.grown += min(count, size - awake)

    def normal(self, layer: str, draws: torch.Generator) -> Tensor:
        """Normal draws for every entry of a layer."""
        return torch.randn(self.realisation.makers[layer].theta.shape, generator=draws, device=self.device)

    def uniform(self, count: int, draws: torch.Generator) -> Tensor:
        """Draws of [0, 1), one per missing connection."""
        return torch.rand(count, generator=draws, device=self.device)

    def keys(self, layer: str, draws: torch.Generator) -> Tensor:
        """Draws of [0, 1) that rank the entries of a layer."""
        return torch.rand(self.realisation.makers[layer].theta.shape, generator=draws, device=self.device)

    def after_epoch(self, record: dict[str, Any]) -> None:
        active = [int((maker.theta > 0).sum()) for maker in self.realisation.makers.values()]
        record |= {"density": sum(active) / sum(self.sizes), "active_per_layer": active, "grown_per_step": self.grown / self.epoch_steps}
        self.grown = 0

    def report(self) -> dict[str, Any]:
        return super().report() | {"connections": self.budget}

    def extra_state(self) -> dict[str, Any]:
        return {"grown": self.grown}

    def load_extra_state(self, state: dict[str, Any]) -> None:
        self.grown = state["grown"]


METHOD = Bcs
