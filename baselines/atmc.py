"""ATMC: adversarially trained model compression, by l0 projection, factorised layers and ADMM quantisation.

Gui, Wang, Yang, Yu, Wang, Liu: Model Compression with Adversarial Robustness: A Unified Optimization Framework, NeurIPS 2019, as its
official code runs it. Four phases, each from the best epoch of the one before: dense adversarial training; the same with all but k weights
set to zero after each step; the same in factors A, B, C (their k survivors shared); the same with a quantised copy Z of the factors, which
is what is deployed. The full-precision result is the third phase, the quantised one the fourth: with 1 bit each factor has two values of
its own and zero (the paper says two values per layer). "binary" is therefore not {-1, 0, +1} here, and a deployed weight (B + I) A + C has
more non-zeros than the factors that are stored.

Of `train.compute: bf16` only the convolutions take part. In float32 stay the products of factors, made once per step outside of the
network, so that a weight is rounded once and not in each factor too; the quantiser's penalty, a sum of squares of the small differences
W + U - Z, which bfloat16 would cancel; and the fit of codebooks, whose stopping rule is absolute.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from methods.data.load import Data
from methods.data.split import Batch
from methods.networks.resnet import Net
from methods.pruning.admm import Admm, update_due
from methods.pruning.codebook import seed_positions
from methods.pruning.factors import Factorised
from methods.pruning.projection import compressed_layers, groups, keep_largest
from methods.training.declared import Counts, check_bits, check_levels, check_stored
from methods.training.losses import mixed_loss
from methods.training.method import Method
from methods.training.phases import check_phase

RECIPE = {
    "version": 2,
    "name": "ATMC",
    "cites": "Gui et al., NeurIPS 2019",
    "run": {
        "arch": "rn34",
        "lbn": False,
        "bn_affine": True,
        "normalize": False,  # the official CIFAR-10 script trains on plain [0, 1] images
        "head_bias": True,
        "precision": "fp",
        "sparsity": 0.99,
        "p": "global",
        "init": {"weights": "default"},
        # The official PGD: steps of 1.25 eps / 7. It asks for a random start, but the line that should add the noise drops its result.
        "attack": {"name": "pgd", "steps": 7, "step": 0.17857142857142858, "start": "none", "pick": "last", "bn": "train"},
        "validate": {"steps": 7, "step": 0.17857142857142858, "start": "none", "pick": "last"},  # the training attack selects, as there
        "train": {
            "optimizer": "sgd",
            "lr": 0.05,
            "momentum": 0.9,
            "weight_decay": 1e-4,
            "schedule": "steps",
            "milestones": [80, 120, 150],
            "epochs": 200,
            "batch": 128,
        },
        # Share of the clean cross-entropy in the loss: half in the official CIFAR-10 script, none in the CIFAR-100 one.
        "options": {"w_clean": 0.5},
    },
    "when": [
        [{"precision": "fp"}, {"phase": "factorised"}],
        [{"precision": "binary"}, {"phase": "quantised"}],
        [{"dataset": "cifar100"}, {"normalize": True, "train": {"batch": 256}, "options": {"w_clean": 0}}],
        [
            {"dataset": "imagenet100"},
            {
                "normalize": True,
                "attack": {"name": "fgsm_atta", "step": 0.5},
                "validate": {"steps": 10, "step": 0.25, "start": None, "pick": None},
                "train": {"epochs": 50, "batch": 256},
            },
        ],
        [{"dataset": "imagenet100", "phase": "dense"}, {"train": {"milestones": [20, 30, 38]}}],
        [{"dataset": "imagenet100", "phase": "sparse"}, {"train": {"milestones": [8, 15, 22, 30]}}],
        [{"dataset": "imagenet100", "phase": "factorised"}, {"train": {"milestones": [15, 20, 30]}}],
        [{"dataset": "imagenet100", "phase": "quantised"}, {"train": {"milestones": [20, 27, 40]}}],
        [{"eps": 0}, {"options": {"w_clean": 0}}],  # vanilla training is plain cross-entropy, whatever the data set
    ],
    "phases": {
        "dense": {"ignores": ["sparsity", "p", "precision", "options.factorise", "options.quantiser"]},
        "sparse": {
            "parent": "dense",
            "ignores": ["precision", "options.factorise", "options.quantiser"],
            "run": {"train": {"lr": 0.01, "milestones": [30, 60, 90, 120]}},
        },
        "factorised": {
            "parent": "sparse",
            "ignores": ["precision", "options.quantiser"],
            "run": {
                "train": {"lr": 0.005, "milestones": [60, 80, 120]},
                "options": {"factorise": True},  # False keeps plain weights: then 1 bit is two values per layer, as the paper puts it
            },
        },
        "quantised": {
            "parent": "factorised",
            "run": {
                "train": {"lr": 0.005, "milestones": [60, 80, 120], "epochs": 150},
                "options": {
                    "factorise": True,
                    "quantiser": {
                        "bits": 1,
                        "rho": 0.1,
                        "interval": 10,  # batches, counted from the start of each epoch
                        "seeds": "random",  # official; sign_aware avoids that half of the 1-bit codebooks have values of one sign only
                        "iterations": 20,
                        "tolerance": 1e-4,
                        "mask": "unfitted",  # official: none; all: Z is as sparse as W
                    },
                },
            },
        },
    },
    "in_steps": ["options.quantiser.interval"],
    "deviations": [
        [
            "epochs",
            "200, 200, 200, 150; the paper: 400 unless specified",
            "200, 200, 200, 150",
            "baselines keep their settings, says the paper",
        ],
        [
            "training attack",
            "7 steps, no random start; the paper: 10 iterations",
            "7 steps, no random start",
            "baselines keep their settings, says the paper",
        ],
        ["selection", "on test images", "on held-out training images", "the paper selects on those"],
        ["normalisation on CIFAR-100", "CIFAR-10's constants", "its own", "batch norm undoes all but borders of it"],
        ["budgets by layer", "none", "the paper's counts, shared by the factors of a layer", "the paper's rows p = 0.1 and 1.0"],
        ["tensors too sparse to fit", "deployed unquantised", "zero where W is; 'quantiser.mask: none' is official", "else not binary"],
        ["short epochs", "Z is never updated", "updated at the last batch", "what is deployed is always quantised"],
        ["ImageNet-100", "none", "FGSM+ATTA, 50 epochs a phase, scaled milestones, batch 256", "the paper's attack and epochs"],
    ],
}


class Atmc(Method):
    """One of the four phases. `layers` holds, per convolution, the tensors that are compressed: its factors, or its weight."""

    hands_over = "best"

    def __init__(self, spec: dict, data: Data, *, device: torch.device, parent: dict[str, Tensor] | None = None):
        phase = check_phase(RECIPE["phases"], spec, parent)
        super().__init__(spec, data, device=device, parent=parent)
        self.layers = compressed_layers(self.net, self.realisation.makers)
        sizes = [conv.weight.numel() for _, conv in self.net.convs()]
        self.groups = groups(self.layers, sizes, self.keep, spec["p"]) if phase != "dense" else []
        self.admm: Admm | None = None
        if phase == "quantised":
            settings = self.options["quantiser"]
            self.interval, self.seeding = settings["interval"], settings["seeds"]
            self.admm = Admm(self.compressed(), **{key: settings[key] for key in ("bits", "rho", "iterations", "tolerance", "mask")})
            self.deployed = copy.deepcopy(self.net)

    def compressed(self) -> dict[str, nn.Parameter]:
        """Every compressed tensor by the name of its layer and its own."""
        return {f"{layer}.{name}": tensor for layer, parts in self.layers.items() for name, tensor in parts.items()}

    def makers(self) -> dict[str, nn.Module]:
        if not self.options.get("factorise"):
            return {}
        return {name: Factorised(conv.weight.detach()) for name, conv in self.net.convs()}

    def inherit(self, parent: dict[str, Tensor], makers: dict[str, nn.Module]) -> None:
        self.net.load_state_dict({name.removeprefix("net."): t for name, t in parent.items() if name.startswith("net.")})
        factors = {name.removeprefix("maker."): t for name, t in parent.items() if name.startswith("maker.")}
        for layer, maker in makers.items():
            if factors:
                maker.load_state_dict({name: factors[f"{layer}.{name}"] for name in maker.state_dict()})
            else:
                maker.start(parent[f"net.{layer}.weight"])

    def loss(self, batch: Batch, draws: torch.Generator) -> tuple[Tensor, dict[str, Tensor]]:
        clean, adv = self.adversarial(batch, draws)
        loss, logs = mixed_loss(self.net, clean, adv, batch.y, self.options["w_clean"])
        if self.admm is not None:
            penalty = self.admm.penalty()
            loss, logs = loss + penalty, logs | {"penalty": penalty.detach()}
        return loss, logs

    def after_step(self, step: int, draws: torch.Generator) -> None:
        # The optimiser's momentum is left alone: a weight at zero goes on gathering it and may come back.
        for tensors, kept in self.groups:
            keep_largest(tensors, kept)
        if self.admm is not None and self.update_due(step):
            self.admm.update(lambda name, weight, values: self.seeds(name, weight, values, draws))

    def update_due(self, step: int) -> bool:
        """Whether the batch that made this step (1, 2, ...) updates Z."""
        return update_due((step - 1) % self.epoch_steps, self.epoch_steps, self.interval)

    def seeds(self, name: str, weight: Tensor, values: Tensor, draws: torch.Generator) -> Tensor:
        """Flat positions of the entries of one tensor that its codebook starts from."""
        return seed_positions(self.seeding, weight, values, self.admm.levels, draws)

    @torch.no_grad()
    def validated(self) -> Net:
        """The network itself, or in the last phase one with Z's weights and everything else, batch-norm statistics included, of W's."""
        if self.admm is None:
            return self.net
        self.deployed.load_state_dict(self.net.state_dict())
        for layer, conv in self.deployed.convs():
            parts, maker = {name: self.admm.z[f"{layer}.{name}"] for name in self.layers[layer]}, self.realisation.makers.get(layer)
            conv.weight.copy_(functional_call(maker, parts, ()) if maker is not None else parts["weight"])
        return self.deployed

    def declared_counts(self, sizes: list[int]) -> Counts:
        """None where factors are pruned: 'sparsity' counts their entries, and a product of sparse factors has more non-zeros."""
        return sizes if self.spec["phase"] == "dense" else None

    def check_start(self) -> None:
        if self.admm is None:
            super().check_start()
        else:
            check_bits(self.spec, self.admm.levels)

    def check_declared(self, tensors: dict[str, Tensor], report: dict[str, Any]) -> None:
        """Precision and sparsity as ATMC means them: two values per stored tensor, k entries of W over all of them.

        With the official 'quantiser.mask: none' a tensor too sparse for a codebook is deployed as it is, and more values are allowed.
        """
        if self.admm is None:
            super().check_declared(tensors, report)
        elif self.admm.mask != "none":
            check_levels(report["distinct_values_z"], self.admm.levels)
        if self.groups:
            check_stored(self.spec, report["nonzero_w"], report["k"])

    def report(self) -> dict[str, Any]:
        report, tensors = super().report(), self.compressed().values()
        if self.groups:
            report |= {"k": sum(kept for _, kept in self.groups), "stored_entries": sum(t.numel() for t in tensors)}
            report["nonzero_w"] = sum(int(t.count_nonzero()) for t in tensors)
        return report | (self.admm.report() if self.admm is not None else {})

    def extra_state(self) -> dict[str, Any]:
        return self.admm.state() if self.admm is not None else {}

    def load_extra_state(self, state: dict[str, Any]) -> None:
        if self.admm is not None:
            self.admm.load(state)


METHOD = Atmc
