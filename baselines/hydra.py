"""HYDRA: pretrain a dense network, search for a mask over its frozen weights, finetune what the mask kept.

Sehwag et al.: HYDRA: Pruning Adversarially Robust Neural Networks, NeurIPS 2020. Each phase is a run of its own: new optimiser, new
schedule, new stored perturbations; weights, batch norms and (from the search on) scores are handed over. The objective is TRADES in all
phases; where one gradient step per batch is all the attack may cost (FGSM+ATTA), and at radius 0, it is the cross-entropy. The authors'
script also uses 500k pseudo-labelled images, which the paper does not mention and no other baseline has: left out.
Not released, and composed here: adaptive counts, BinaryConnect (sign of a latent under the mask) and the last batch norm.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any

import torch
from torch import Tensor, nn

from methods.attacks.pgd import kl_pgd, mode
from methods.core.allocation import layer_counts
from methods.core.errors import UserError
from methods.data.load import Data
from methods.data.split import Batch
from methods.networks import init
from methods.networks.resnet import Net
from methods.pruning.makers import Scored, Signed
from methods.training.losses import accuracy, forward_with_statistics, trades_loss
from methods.training.method import Method
from methods.training.phases import check_phase

RECIPE = {
    "version": 2,
    "name": "HYDRA",
    "cites": "Sehwag et al., NeurIPS 2020",
    "run": {
        "arch": "rn34",
        "lbn": False,
        "bn_affine": True,
        "normalize": False,  # as in the official code on CIFAR, where only ImageNet is normalised
        "head_bias": True,  # the official classifier always has one; it is never pruned
        "precision": "fp",
        "sparsity": 0.99,
        "p": 0.1,
        "init": {"weights": "default"},  # the official option is named kaiming_normal but has no effect on CIFAR networks
        # Radius and step of the paper (8/255, a quarter of it); the official 0.031 and 0.0078 are one percent smaller.
        "attack": {"name": "trades", "steps": 10, "step": 0.25},
        "validate": {"steps": 10, "step": 0.25},
        "train": {
            "optimizer": "sgd",
            "lr": 0.1,
            "momentum": 0.9,
            "weight_decay": 1e-4,
            "schedule": "cosine_hydra",
            "epochs": 100,
            "batch": 128,
        },
        "options": {
            "beta": 6.0,  # weight of the KL term
            "counts": "adaptive",  # the paper's layer-wise counts
        },
    },
    # The paper gives 50/10/50 epochs for ImageNet-100 and none for CIFAR: exactly half of the official 100/20/100, taken here.
    "phases": {
        # Children start from the last epoch, as the official script does, though the best one is known.
        "pretrain": {"ignores": ["sparsity", "p", "options.counts"], "run": {"options": {"hands_over": "last"}}},
        "prune": {
            "parent": "pretrain",
            # Batch norms keep training while the weights are frozen. The official helper forgets 1-d ones; here the last one trains too.
            "run": {"train": {"epochs": 20}, "options": {"hands_over": "last", "train_norms": True}},
        },
        "finetune": {"parent": "prune", "run": {"train": {"lr": 0.01}}},
    },
    "when": [
        # One rate for all layers is what the official code does: 212 669 weights of RN34, where the adaptive rule keeps 212 685 at p = 1.
        [{"p": 1.0}, {"options": {"counts": "fixed"}}],
        # Binary: "the same settings as in adversarial training", so Adam for the latents. Scores are no BinaryConnect weights: SGD stays.
        [
            {"precision": "binary", "phase": ["pretrain", "finetune"]},
            {"train": {"optimizer": "adam", "lr": 1e-4, "momentum": None, "weight_decay": 5e-4}},
        ],
        # Latents clamped at +-1 tie; a relative jitter of the first scores decides between them by the seed, not by position.
        [{"precision": "binary", "phase": "prune"}, {"options": {"jitter": 1e-6}}],
        # The official code trains "for free" on ImageNet; the paper plugs FGSM+ATTA into every baseline there, which has no TRADES form.
        [
            {"dataset": "imagenet100"},
            {
                "normalize": True,
                "init": {"weights": "kaiming_normal_fan_out"},
                "attack": {"name": "fgsm_atta", "step": 0.5},
                "train": {"epochs": 50, "batch": 256},
            },
        ],
        [{"dataset": "imagenet100", "phase": "prune"}, {"train": {"epochs": 10}}],
        [{"precision": "binary"}, {"init": {"weights": "kaiming_normal"}}],  # BinaryConnect's latents
        # A plain adversarial-training variant can be asked for: the paper's attacker.
        [
            {"attack.name": "pgd"},
            {
                "attack": {"steps": 10, "step": 0.25, "start": "uniform", "pick": "worst", "bn": "train"},
                "options": {"beta": None},
            },
        ],
        [{"attack.name": "fgsm_atta"}, {"options": {"beta": None}}],
        [{"eps": 0}, {"options": {"beta": None}}],
    ],
    "deviations": [
        ["epochs", "100, 20, 100; the paper: 400 unless specified", "100, 20, 100", "baselines keep their settings, says the paper"],
        ["further images", "500 000 pseudo-labelled ones", "none", "the paper does not mention them; no other baseline has them"],
        ["radius and step", "0.031 and 0.0078", "8/255 and 2/255, half on CIFAR-100", "the paper's"],
        ["kept weights", "one rate for all layers", "adaptive counts; 'p: 1.0' is one rate", "the paper's rows"],
        ["selection", "on test images", "on held-out training images, by the paper's PGD", "the paper selects on those"],
        ["divergence", "of probabilities", "of their logarithms", "equal, and its gradient is no NaN where one underflows"],
        ["last batch norm in the search", "1-d norms stay frozen", "trained like the others", "official networks have none"],
        ["binary network", "none; the paper: as binary AT", "latents by Adam, scores by SGD", "scores are no BinaryConnect weights"],
        ["batch of the binary network", "512, as binary AT has", "128, as in full precision", "as many steps as the other phases"],
        ["ties of binary scores", "none", "a relative jitter of 1e-6", "latents clamped at +-1 are equal; position would decide"],
        ["ImageNet-100", "free adversarial training", "FGSM+ATTA with cross-entropy; 50, 10, 50 epochs", "the paper's attack and epochs"],
    ],
}
HANDS_OVER = ("last", "best")


def scaled_scores(weight: Tensor) -> Tensor:
    """First scores: the weights themselves, scaled to the bound of a Kaiming-uniform draw, so that the first mask is by magnitude."""
    fan_in = weight[0].numel()
    return weight * (sqrt(6 / fan_in) / weight.abs().max())


def trades_step(net: Net, x: Tensor, y: Tensor, attack: Callable[[], Tensor], beta: float) -> tuple[Tensor, dict[str, Tensor]]:
    """TRADES loss of a batch, with the running statistics that the official step leaves: clean, (attack), clean, adversarial, clean.

    Its first clean forward only feeds a log, but the attack, in eval mode, already sees the statistics that it moved.
    """
    clean, update = forward_with_statistics(net, x)
    update()
    adv = attack()
    update()
    adversarial = net(adv)
    update()
    loss, logs = trades_loss(clean, adversarial, y, beta)
    return loss, {**logs, "acc": accuracy(adversarial, y)}


class Hydra(Method):
    """One phase of HYDRA."""

    def __init__(self, spec: dict, data: Data, *, device: torch.device, parent: dict[str, Tensor] | None = None):
        check_phase(RECIPE["phases"], spec, parent)
        super().__init__(spec, data, device=device, parent=parent)

    @property
    def hands_over(self) -> str | None:
        choice = self.options.get("hands_over")
        if choice not in (None, *HANDS_OVER):
            raise UserError(f"unknown 'options.hands_over: {choice}'; allowed: {', '.join(HANDS_OVER)}")
        return choice

    def initialise(self) -> None:
        super().initialise()
        if self.spec["init"]["weights"] == "kaiming_normal_fan_out":  # the official networks apply it to convolutions only
            weight = self.net.head.weight
            weight.data.copy_(init.weights("default", weight.shape, self.draws("classifier")))

    def makers(self) -> dict[str, nn.Module]:
        convs, binary, phase = self.net.convs(), self.spec["precision"] == "binary", self.spec["phase"]
        if phase == "pretrain":
            return {name: Signed(conv.weight.detach().clone()) for name, conv in convs} if binary else {}
        if phase == "prune":
            self.freeze()
        counts = self.declared_counts([conv.weight.numel() for _, conv in convs])
        train = "scores" if phase == "prune" else "weight"
        return {
            name: Scored(conv.weight.detach().clone(), torch.zeros_like(conv.weight), kept, train=train, binary=binary)
            for (name, conv), kept in zip(convs, counts, strict=True)
        }

    def declared_counts(self, sizes: list[int]) -> list[int]:
        if self.spec["phase"] == "pretrain":
            return sizes
        return layer_counts(sizes, self.spec["sparsity"], self.spec["p"], rule=self.options["counts"])

    def freeze(self) -> None:
        """Leave only the batch norms of the network trainable, or not even them. (Its weights belong to the makers.)"""
        if self.net.head.bias is not None:
            self.net.head.bias.requires_grad_(False)
        for norm in self.net.norms():
            norm.requires_grad_(self.options["train_norms"])

    def inherit(self, parent: dict[str, Tensor], makers: dict[str, nn.Module]) -> None:
        self.net.load_state_dict({name.removeprefix("net."): t for name, t in parent.items() if name.startswith("net.")})
        ties = self.draws("ties")
        for name, maker in makers.items():
            if self.spec["phase"] == "finetune":
                weight, scores = parent[f"maker.{name}.weight"], parent[f"maker.{name}.scores"]
            else:
                # Of a binary network the latents: its weights have one magnitude and could not be told apart.
                weight = parent.get(f"maker.{name}.latent", parent[f"net.{name}.weight"])
                scores = scaled_scores(weight)
                if jitter := self.options.get("jitter", 0):
                    scores *= 1 - jitter * torch.rand(scores.shape, generator=ties)
            maker.weight.data.copy_(weight)
            maker.scores.data.copy_(scores)

    def loss(self, batch: Batch, draws: torch.Generator) -> tuple[Tensor, dict[str, Tensor]]:
        if self.attack != "trades" or self.eps == 0:
            return super().loss(batch, draws)
        settings = self.spec["attack"]

        def attack() -> Tensor:
            alpha = settings["step"] * self.eps
            with mode(self.net, training=False):
                return kl_pgd(self.net, batch.x, eps=self.eps, alpha=alpha, steps=settings["steps"], generator=draws)

        return trades_step(self.net, batch.x, batch.y, attack, self.options["beta"])

    def report(self) -> dict[str, Any]:
        report = super().report()
        bias = self.net.head.bias
        kept = {"kept": sum(maker.kept for maker in self.realisation.makers.values())} if self.spec["phase"] != "pretrain" else {}
        return {**report, **kept, "density": report["nonzero"] / report["weights"], "classifier_bias": 0 if bias is None else bias.numel()}


METHOD = Hydra
