"""Adversarial training of a binary network (BinaryConnect-AT): every convolution weight is the sign of a trained latent.

Courbariaux, Bengio, David: BinaryConnect: Training Deep Neural Networks with binary weights during propagations, NeurIPS 2015, as the
paper uses it: deterministic, no scale factor, identity gradient, latents clamped to [-1, 1], first and last layer included, one Adam
without the original's Glorot-scaled learning rates.
"""

from __future__ import annotations

from torch import nn

from methods.pruning.makers import Signed
from methods.training.method import Method

RECIPE = {
    "version": 2,
    "name": "BinaryConnect-AT",
    "cites": "Courbariaux et al., NeurIPS 2015; Madry et al., ICLR 2018",
    "run": {
        "arch": "rn34",
        "lbn": False,
        "bn_affine": True,
        "normalize": True,
        "head_bias": False,
        "precision": "binary",
        "init": {"weights": "kaiming_normal"},
        "attack": {"name": "pgd", "steps": 10, "step": 0.25, "start": "uniform", "pick": "worst", "bn": "train"},
        "validate": {"steps": 10, "step": 0.25},
        "train": {
            "optimizer": "adam",
            # The paper and both released scripts say 1e-4; most released configuration files say 5e-4, ImageNet-100's among them.
            "lr": 1e-4,
            "weight_decay": 5e-4,
            "schedule": "cosine",
            "epochs": 400,
            "batch": 512,
        },
    },
    "when": [
        [{"dataset": "imagenet100"}, {"attack": {"name": "fgsm_atta"}, "train": {"epochs": 100}}],
        [{"attack.name": "fgsm_atta"}, {"attack": {"step": 0.5}}],
    ],
    "deviations": [
        [
            "attack",
            "the paper: the last point of gradient steps",
            "signed steps, the worst of ten points, as its code",
            "the code made the number",
        ],
        ["learning rate", "5e-4 in most configurations, 1e-4 in both scripts and the paper", "1e-4", "the scripts made the numbers"],
        [
            "variant",
            "Courbariaux et al.: random signs, rates by layer, no decay",
            "fixed signs, one rate, decay 5e-4",
            "as the paper's code",
        ],
    ],
}


class BinaryConnect(Method):
    """Latents behind the signs."""

    def makers(self) -> dict[str, nn.Module]:
        return {name: Signed(conv.weight.detach().clone()) for name, conv in self.net.convs()}


METHOD = BinaryConnect
