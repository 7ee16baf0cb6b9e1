"""TRADES: cross-entropy on clean images plus beta times the divergence that an attack can cause; full precision and binary.

Zhang et al.: Theoretically Principled Trade-off between Robustness and Accuracy, ICML 2019, with the settings of the paper's released
configurations (the original trains 76 epochs in batches of 128 with decay 2e-4). The binary network is BinaryConnect's.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from methods.attacks.pgd import kl_pgd, mode
from methods.core.errors import UserError
from methods.data.split import Batch
from methods.pruning.makers import Signed
from methods.training.losses import accuracy, forward_with_statistics, trades_loss
from methods.training.method import Method

RECIPE = {
    "version": 2,
    "name": "TRADES",
    "cites": "Zhang et al., ICML 2019",
    "run": {
        "arch": "rn34",
        "lbn": False,
        "bn_affine": True,
        "normalize": True,
        "head_bias": False,
        "precision": "fp",
        "init": {"weights": "kaiming_normal"},
        # From 0.001 Gaussian noise, last iterate, batch norm in eval mode: unlike the PGD of adversarial training.
        "attack": {"name": "trades", "steps": 10, "step": 0.25, "bn": "eval"},
        "validate": {"steps": 10, "step": 0.25},
        "train": {
            "optimizer": "sgd",
            "lr": 0.1,
            "momentum": 0.9,
            "weight_decay": 5e-4,
            "schedule": "steps",
            "milestones": [200, 300],
            "epochs": 400,
            "batch": 512,
        },
        "options": {
            "beta": 6.0,
            # The official loss forwards clean, adversarial, clean: the logits are those of two forwards, but the running statistics of
            # batch norm move three times. 2 leaves the last update out.
            "forwards": 3,
        },
    },
    "when": [
        # The released binary configurations say 5e-4, but no released script runs them; 1e-4 is what the paper says of binary training.
        [
            {"precision": "binary"},
            {"train": {"optimizer": "adam", "lr": 1e-4, "schedule": "cosine", "momentum": None, "milestones": None}},
        ],
    ],
    "deviations": [
        ["budget", "Zhang et al.: 76 epochs, batch 128, decay 2e-4", "400, 512, 5e-4", "the paper's configurations"],
        ["radius and step", "Zhang et al.: 0.031 and 0.007", "8/255 and 2/255, half on CIFAR-100", "the paper's configurations"],
        ["rate of the binary network", "5e-4 in configurations that no script runs", "1e-4", "what the paper says of binary training"],
        ["divergence", "of probabilities", "of their logarithms", "equal, and its gradient is no NaN where one underflows"],
    ],
}


class Trades(Method):
    """All weights, or the latents behind their signs, trained on the TRADES loss."""

    def makers(self) -> dict[str, nn.Module]:
        if self.spec["attack"]["name"] not in ("trades", "none"):
            raise UserError(f"'attack.name: {self.spec['attack']['name']}': TRADES has its own attack; allowed: trades, none")
        if self.options["forwards"] not in (2, 3):
            raise UserError(f"'options.forwards: {self.options['forwards']}' must be 3 (official) or 2")
        if self.spec["precision"] == "fp":
            return {}
        return {name: Signed(conv.weight.detach().clone()) for name, conv in self.net.convs()}

    def adversarial(self, batch: Batch, draws: torch.Generator) -> tuple[Tensor, Tensor]:
        if self.eps == 0 or self.attack == "none":
            return batch.x, batch.x
        settings = self.spec["attack"]
        with mode(self.net, settings["bn"] == "train"):
            adv = kl_pgd(self.net, batch.x, eps=self.eps, alpha=settings["step"] * self.eps, steps=settings["steps"], generator=draws)
        return batch.x, adv

    def loss(self, batch: Batch, draws: torch.Generator) -> tuple[Tensor, dict[str, Tensor]]:
        x, adv = self.adversarial(batch, draws)
        if adv is x:  # vanilla training: the divergence is zero and one forward is enough
            logits = self.net(x)
            return F.cross_entropy(logits, batch.y), {"acc": accuracy(logits, batch.y)}
        clean, update = forward_with_statistics(self.net, x)
        update()
        adversarial = self.net(adv)
        if self.options["forwards"] == 3:
            update()
        loss, logs = trades_loss(clean, adversarial, batch.y, self.options["beta"])
        return loss, logs | {"acc": accuracy(adversarial, batch.y)}


METHOD = Trades
