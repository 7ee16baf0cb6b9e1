"""Recordings of the official HYDRA and RST programs: score initialisation, training steps, weight laws, schedules.

Not repeated: RST's fan-scaled weights other than the signed constant. Its flag scales by the pruned instead of the kept fraction, no
released configuration sets it, and the suite has no such option.
"""

from __future__ import annotations

import json
import re
from functools import partial
from math import ceil, sqrt
from pathlib import Path

import torch
from torch import Tensor

from baselines import hydra
from methods.core.allocation import fixed_counts, keep_fraction, kept_count
from methods.data.split import generator
from methods.networks import init
from methods.networks.resnet import build
from methods.pruning.makers import select
from methods.training.optim import learning_rate
from tests.golden.check import Check, rel
from tests.golden.official import Official
from tests.golden.official_steps import EXACT, differing, hydra_steps, rst_steps

SIGMAS = 6.0
LAWS = {  # official option: our law
    "signed_constant": "signed_constant",
    "signed_constant+scale_fan": "signed_kc",
    "unsigned_constant": "unsigned_constant",
    "kaiming_normal": "kaiming_normal",
    "kaiming_uniform": "kaiming_uniform",
    "xavier_normal": "xavier_normal",
    "xavier_constant": "xavier_constant",
    "standard": "default",
}


def score_init(path: Path) -> list[Check]:
    """HYDRA's first scores and masks, and kept counts of many layer sizes."""
    official, checks = Official(path), []
    for layer, weight in official.group("weight").items():
        recorded = official[f"scores/{layer}"]
        checks.append(Check("first scores", rel(hydra.scaled_scores(weight), recorded), 1e-6, layer))
        for rate in {key.split("/")[0].removeprefix("mask_k") for key in official.arrays if key.startswith("mask_k")}:
            kept, note = kept_count(weight.numel(), float(rate)), f"{layer} k={rate}"
            checks.append(Check("kept counts", abs(kept - int(official[f"kept_k{rate}/{layer}"])), EXACT, note))
            checks.append(Check("masks", differing(select(recorded, kept), official[f"mask_k{rate}/{layer}"]), EXACT, note))
            checks.append(
                Check("masks", differing(select(weight, kept), official[f"mask_k{rate}/{layer}"]), EXACT, f"{note}, by magnitude")
            )
    for n, percent, kept in zip(*(official[f"corner_{name}"].tolist() for name in ("n", "k_percent", "kept")), strict=True):
        checks.append(Check("kept counts, corner cases", abs(kept_count(n, percent / 100) - kept), EXACT, f"n={n} k={percent} %"))
    return checks


def full_size(recorded: dict) -> list[tuple[str, torch.Size]]:
    """Convolutions of our network for an official architecture such as cResNet34 (CIFAR) or ResNet50."""
    depth = re.search(r"\d+$", recorded["architecture"])[0]
    stem = "imagenet" if recorded.get("stem", "3x3").startswith("7x7") else "cifar"
    with torch.device("meta"):
        net = build(f"rn{depth}", classes=recorded["classes"], stem=stem)
    return [(name, conv.weight.shape) for name, conv in net.convs()]


def same_shapes(ours: list[tuple[str, torch.Size]], recorded: list[dict], note: str) -> Check:
    shapes = [layer["shape"] for layer in recorded]
    return Check("shapes of the layers", float([list(shape) for _, shape in ours] != shapes), EXACT, note)


def law_checks(what: str, ours: Tensor, law: dict, note: str) -> list[Check]:
    """Draws against the analytic law: constants directly, spreads in standard errors, bounds and signs."""
    n, checks = ours.numel(), []
    if "abs" in law:
        checks.append(Check(f"magnitude of {what}", (ours.abs() / law["abs"] - 1).abs().max().item(), 1e-6, note))
        if not law["signed"]:
            return [*checks, Check(f"negative {what}", float((ours < 0).sum()), EXACT, note)]
    else:
        error = 1 / sqrt(5 * n) if law["law"] == "uniform" else 1 / sqrt(2 * n)
        spread = abs(ours.double().std(correction=0).item() / law["std"] - 1)
        checks.append(Check(f"spread of {what} (sigmas)", spread / error, SIGMAS, note))
    if "bound" in law:
        checks.append(Check(f"{what} beyond the bound", max(0.0, ours.abs().max().item() / law["bound"] - 1), 1e-6, note))
    share = (ours > 0).double().mean().item()
    return [*checks, Check(f"positive {what} (sigmas)", abs(share - 0.5) * 2 * sqrt(n), SIGMAS, note)]


def rst_init(path: Path) -> list[Check]:
    """Laws of RST's weights and scores, and what its fixed rate keeps of full-size networks."""
    recorded = json.loads(path.read_text())
    ours, keep = full_size(recorded), recorded["keep_ratio_option"]
    checks = [same_shapes(ours, recorded["layers"], recorded["architecture"])]
    for (name, shape), layer in zip(ours, recorded["layers"], strict=True):
        fans = abs(init.fan_in(shape) - layer["fan_in"]) + abs(init.fan_out(shape) - layer["fan_out"])
        checks.append(Check("fans", fans, EXACT, layer["name"]))
        for option, kind in LAWS.items():
            if option in recorded["weight_init"]:
                weight = init.weights(kind, shape, generator(0, option, name), keep=keep_fraction(keep), stream=(0, name))
                law, note = recorded["weight_init"][option][layer["name"]]["law"], f"{option} {layer['name']}"
                checks += law_checks("weights", weight, law, note)
        score = init.scores("fan_uniform", shape, generator(0, "scores", name), a=1.0)
        checks += law_checks("scores", score, recorded["score_init"][layer["name"]]["law"], layer["name"])
    for net in recorded["kept_counts_fixed_rate"]:
        note = f"{net['architecture']} {net['classes']} classes"
        sizes = [layer["numel"] for layer in net["layers"]]
        counts = fixed_counts(sizes, keep_fraction(net["k"]))
        checks += [
            same_shapes(full_size(net), net["layers"], note),
            Check("kept counts", differing(torch.tensor(counts), torch.tensor([layer["kept"] for layer in net["layers"]])), EXACT, note),
            Check("kept in total", abs(sum(counts) - net["total_kept"]), EXACT, note),
            Check("weights in total", abs(sum(sizes) - net["total_numel"]), EXACT, note),
        ]
    return checks


def schedule_of(recorded: dict) -> dict:
    """Our `train` settings for an official schedule."""
    kind, epochs = recorded["schedule"], recorded["epochs"]
    settings = {"lr": recorded["lr0"], "epochs": epochs, "schedule": "steps", "warmup": recorded.get("warmup_length", 0)}
    if recorded.get("warmup_epochs"):
        raise ValueError("HYDRA's warm-up is not offered")
    every = ceil(recorded.get("multistep_lr_adjust", 1) / recorded.get("n_repeats", 1))
    milestones = {
        "constant": [],
        "constant_lr": [],
        "step": [ceil(0.75 * epochs), ceil(0.9 * epochs)],
        "cifar_piecewise": [80, 120],
        "cifar_piecewise_adv": [50, 150],
        "multistep_lr": recorded.get("multistep"),
        "multistep_lr_imagenet": range(every, epochs, every),
        "multistep_lr_imagenet_free": range(every, epochs, every),
    }
    if kind in milestones:
        return settings | {"milestones": list(milestones[kind])}
    return settings | {"schedule": {"cosine": "cosine_hydra", "cosine_lr": "cosine"}[kind]}


def lr_schedules(path: Path) -> list[Check]:
    """Learning rate of each epoch."""
    checks = []
    for program, schedules in json.loads(path.read_text()).items():
        for name, recorded in schedules.items():
            settings = schedule_of(recorded)
            ours = [learning_rate(settings, epoch) for epoch in range(recorded["epochs"])]
            apart = max(abs(a / b - 1) for a, b in zip(ours, recorded["lr"], strict=True))
            checks.append(Check("learning rates", apart, 1e-12, f"{program} {name}"))
    return checks


KINDS = {
    "hydra_score_init": score_init,
    "hydra_pretrain_steps": partial(hydra_steps, phase="pretrain"),
    "hydra_prune_steps": partial(hydra_steps, phase="prune"),
    "hydra_finetune_steps": partial(hydra_steps, phase="finetune"),
    "rst_steps": rst_steps,
    "rst_init": rst_init,
    "lr_schedules": lr_schedules,
}
