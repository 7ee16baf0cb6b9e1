"""Adversarial training of a full-precision network (AT), early-stopped on validation.

Madry et al.: Towards Deep Learning Models Resistant to Adversarial Attacks, ICLR 2018; settings of the paper's released configurations.
"""

from __future__ import annotations

from methods.training.method import Method

RECIPE = {
    "version": 2,
    "name": "AT",
    "cites": "Madry et al., ICLR 2018",
    "run": {
        "arch": "rn34",
        "lbn": False,
        "bn_affine": True,
        "normalize": True,
        "head_bias": False,
        "precision": "fp",
        "init": {"weights": "kaiming_normal"},
        "attack": {"name": "pgd", "steps": 10, "step": 0.25, "start": "uniform", "pick": "worst", "bn": "train"},
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
    },
    "when": [
        # The released configurations of the two other small nets differ from all others and look under-tuned; kept, to match their rows.
        [{"arch": "small_rn18_p01"}, {"train": {"lr": 0.01, "milestones": [100, 200, 300]}}],
        [{"arch": "small_rn18_p10"}, {"train": {"lr": 0.01, "milestones": [100, 200, 300]}}],
        [{"arch": "small_rn50_p01"}, {"train": {"lr": 0.01, "milestones": [100, 200, 300]}}],
        [{"arch": "small_rn50_p10"}, {"train": {"lr": 0.01, "milestones": [100, 200, 300]}}],
        [
            {"dataset": "imagenet100"},
            {"attack": {"name": "fgsm_atta", "step": 0.5}, "train": {"epochs": 100, "milestones": [50, 75]}},
        ],
        [
            {"dataset": "imagenet100", "arch": "small_rn34_p01"},
            {"train": {"batch": 256, "momentum": 0.875, "weight_decay": 3.0517578125e-05}},
        ],
    ],
    "deviations": [
        [
            "attack",
            "the paper: the last point of gradient steps",
            "signed steps, the worst of ten points, as its code",
            "the code made the number",
        ],
        [
            "rates of Small RN18 and RN50",
            "the paper: as for all AT",
            "0.01, a tenth every 100 epochs, as their configurations",
            "the code made the number",
        ],
        [
            "Small RN34 on ImageNet-100",
            "the paper: momentum 0.9, decay 5e-4",
            "0.875, 2^-15, batch 256, as its configuration",
            "the code made the number",
        ],
        ["label smoothing on ImageNet-100", "0.1 in the validation attack only", "none", "it hardly moves what is selected"],
    ],
}

METHOD = Method
