"""RST, robust scratch tickets: adversarial edge-popup over frozen random weights at one rate for all layers.

Fu et al.: Drawing Robust Scratch Tickets: Subnetworks with Inborn Robustness Are Found within Randomly Initialized Networks, NeurIPS 2021.
A preset of the library's edge-popup, not another trainer. Random switching between tickets at inference (R2S), their finetuning and
their structured variants are not part of the baseline.
"""

from __future__ import annotations

import torch
from torch import Tensor

from methods.binary_subnet import BinarySubnet
from methods.core.allocation import layer_counts
from methods.core.errors import UserError
from methods.data.load import Data

RECIPE = {
    "version": 2,
    "name": "RST",
    "cites": "Fu et al., NeurIPS 2021",
    "run": {
        "arch": "rn34",
        "lbn": False,
        "bn_affine": False,
        # In the network, so that the attack works on pixels; officially the loader normalises, and the attack has slightly other constants.
        "normalize": True,
        "head_bias": False,
        "precision": "fp",
        "sparsity": 0.99,
        "p": 1.0,
        # +-sqrt(2 / fan_in), not scaled by the kept fraction: the default of the official CIFAR command and the best of its own study.
        # "fp" only says that the magnitude differs from layer to layer; 'init.weights: kaiming_normal' is the official ImageNet choice.
        "init": {"weights": "signed_constant", "scores": "fan_uniform", "a": 1.0},
        "attack": {"name": "pgd", "steps": 7, "step": 0.25, "start": "uniform", "pick": "last", "bn": "train"},
        "validate": {"steps": 10, "step": 0.25},
        "train": {
            "optimizer": "sgd",
            "lr": 0.1,
            "momentum": 0.9,
            "weight_decay": 5e-4,
            "schedule": "steps",
            "milestones": [80, 120],
            "epochs": 160,
            "batch": 256,
        },
        "options": {"counts": "fixed"},  # official: each layer rounds by itself; "adaptive" is the paper's rule and takes any p
    },
    "when": [
        # The official code fixes the step at 2/255 whatever the radius; that is half of the paper's 4/255.
        [{"dataset": "cifar100"}, {"attack": {"step": 0.5}}],
        # FGSM+ATTA and 100 epochs of the paper; optimiser and schedule of the official ImageNet configuration.
        [
            {"dataset": "imagenet100"},
            {
                "attack": {"name": "fgsm_atta", "step": 0.5},
                "train": {
                    "lr": 0.256,
                    "momentum": 0.875,
                    "weight_decay": 3.0517578125e-05,
                    "schedule": "cosine",
                    "milestones": None,
                    "warmup": 5,
                    "epochs": 100,
                },
            },
        ],
    ],
    "deviations": [
        ["epochs", "160; the paper: 400 unless specified", "160", "baselines keep their settings, says the paper"],
        [
            "training attack",
            "7 steps of 2/255; the paper: 10 iterations",
            "7 steps of 2/255",
            "baselines keep their settings, says the paper",
        ],
        [
            "normalisation",
            "in the loader; CIFAR-10's constants for CIFAR-100",
            "in the network; its own",
            "batch norm undoes all but borders of it",
        ],
        [
            "selection",
            "every third epoch, PGD-20, on test images",
            "every epoch, PGD-10, on held-out training images",
            "the paper selects on those",
        ],
        [
            "weights on ImageNet-100",
            "Kaiming normal in the README",
            "signed constants, as in the configuration of this network",
            "as on CIFAR",
        ],
        [
            "ImageNet-100",
            "90 epochs, two PGD steps at 4/255",
            "FGSM+ATTA, 100 epochs, optimiser of the configuration",
            "the paper's attack and epochs",
        ],
    ],
}


class Rst(BinarySubnet):
    """Edge-popup at a fixed rate."""

    def __init__(self, spec: dict, data: Data, *, device: torch.device, parent: dict[str, Tensor] | None = None):
        if spec["precision"] != "fp":
            raise UserError(f"'precision: {spec['precision']}' is not possible for rst: its frozen weights are real-valued; allowed: fp")
        super().__init__(spec, data, device=device, parent=parent)

    def counts(self, sizes: list[int]) -> list[int]:
        return layer_counts(sizes, self.spec["sparsity"], self.spec["p"], rule=self.options["counts"])


METHOD = Rst
