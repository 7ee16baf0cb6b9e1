"""Recordings of the paper's own code: forward passes, allocation, initialisation, and training steps of five kinds."""

from __future__ import annotations

import json
from functools import partial
from math import sqrt
from pathlib import Path

import torch
from torch import Tensor

from baselines import at, binaryconnect, trades
from methods import binary_subnet
from methods.attacks.pgd import mode
from methods.core.allocation import adaptive_counts, allocate, keep_fraction
from methods.data.split import generator
from methods.networks import init
from tests.golden.check import Check, rel
from tests.golden.method_attacks import EXACT, STATISTICS, atta_checks, mismatches, pgd_checks, trades_checks
from tests.golden.method_steps import mask_check, spec_of, statistics, steps, structure
from tests.golden.recorded import Recording, Replay, conv_table, network

SIGMAS = 5.0


def forward(path: Path) -> list[Check]:
    """Eval forward, train forward, eval forward of one batch through a masked network."""
    recording = Recording(path)
    replay = Replay(recording, binary_subnet.METHOD, spec_of(recording, binary_subnet))
    replay.put("weights", "weights")
    replay.put("scores", "scores")
    replay.load_norms("before.")
    replay.method.push()
    checks = [*structure(replay), mask_check(replay, "masks")]
    x = recording.tensor("x").contiguous(memory_format=replay.method.layout)
    passes = (("eval", "before.", EXACT, 2e-5), ("train", "after.", STATISTICS, 2e-4), ("eval_after", "after.", STATISTICS, 2e-5))
    for name, state, drift, tolerance in passes:
        with torch.no_grad(), mode(replay.net, name == "train"):
            checks.append(Check(f"logits {name}", rel(replay.net(x), recording.tensor(f"logits_{name}")), tolerance))
        checks += statistics(replay, state, f"after {name}", drift)
    return checks


def allocation(path: Path) -> list[Check]:
    """Kept weights per layer of full-size networks, for many sparsities and exponents."""
    checks = []
    for name, recorded in json.loads(path.read_text())["networks"].items():
        layers = torch.tensor(recorded["layers"])
        with torch.device("meta"):
            net = network(layers, lbn=False, affine=False)
        sizes = [row[-1] for row in conv_table(net)]
        checks.append(Check("layer table", mismatches(torch.tensor(conv_table(net)), layers[:, 3:]), EXACT, name))
        checks.append(Check("weights in total", abs(sum(sizes) - recorded["total"]), EXACT, name))
        for case in recorded["cases"]:
            r, p, asked = (float(case[key]) for key in ("r", "p", "keep"))  # typed as decimals
            note, keep = f"{name} r={r} p={p}", keep_fraction(r)
            fractions = torch.tensor(allocate(sizes, keep, p), dtype=torch.float64)
            kept = torch.tensor(adaptive_counts(sizes, r, p))
            checks += [
                Check("kept fraction asked for", abs(keep - asked), EXACT, note),
                Check("budget", abs(int(keep * sum(sizes)) - case["target"]), EXACT, note),
                Check("kept fractions", rel(fractions, torch.tensor(case["keep_fraction"], dtype=torch.float64)), 1e-12, note),
                Check("kept counts", mismatches(kept, torch.tensor(case["kept"])), EXACT, note),
                Check("kept in total", abs(int(kept.sum()) - case["kept_total"]), EXACT, note),
                Check("whole layers", abs(whole_layers(fractions) - case["full_layers"]), EXACT, note),
            ]
    return checks


def whole_layers(fractions: Tensor) -> int:
    """Layers that are left whole: those whose fraction is 1. Rounding can keep every weight of a layer that is asked for a little less."""
    return int((fractions == 1).sum())


WEIGHTS = {
    "binary": "binary",
    "signed_kaiming_constant": "signed_kc",
    "full_precision_kaiming_normal": "kaiming_normal",
    "binaryconnect_latent_kaiming_normal": "kaiming_normal",
}


def init_stats(path: Path) -> list[Check]:
    """Moments of initial weights and scores. Two random streams are compared: deviations are in standard errors of the difference."""
    checks = []
    for number, case in enumerate(json.loads(path.read_text())["cases"]):
        draws, kind = generator(0, "init_stats", number), WEIGHTS[case["init"]]
        for layer in case["layers"]:
            shape, note = torch.Size(layer["shape"]), f"case {number} ({case['init']}), layer {layer['layer']}"
            weight = init.weights(kind, shape, draws, keep=case.get("keep", 1.0), stream=(number, str(layer["layer"])))
            checks += moments("weights", weight, layer["weight"], note, spread=0.71 if kind == "kaiming_normal" else 0.0)
            if "score" in layer:
                score = init.scores("fan_uniform" if case["score_fan_scaling"] else "uniform", shape, draws, a=case["a"])
                checks += moments("scores", score, layer["score"], note, spread=0.45)
                correlation = torch.corrcoef(torch.stack([weight.flatten(), score.flatten()]))[0, 1].item()
                checks.append(Check("correlation of weights and scores (sigmas)", abs(correlation) * sqrt(score.numel()), SIGMAS, note))
    return checks


def moments(what: str, ours: Tensor, recorded: dict, note: str, *, spread: float) -> list[Check]:
    """`spread` is the relative standard error of a standard deviation times sqrt(n); 0 for constant magnitudes, compared directly."""
    error, size = sqrt(2 / ours.numel()), max(abs(recorded["min"]), abs(recorded["max"]))
    mean, std, positive = ours.double().mean().item(), ours.double().std(correction=0).item(), (ours > 0).double().mean().item()
    checks = [
        Check(f"mean of {what} (sigmas)", abs(mean - recorded["mean"]) / (recorded["std"] * error), SIGMAS, note),
        Check(f"positive {what} (sigmas)", abs(positive - recorded["frac_positive"]) / (0.5 * error), SIGMAS, note),
    ]
    if "abs_values" in recorded:
        ours_sizes, sizes = ours.abs().unique(), [value for value in recorded["abs_values"] if value]  # rare exact zeros are not ours
        checks.append(Check(f"magnitudes of {what}", rel(ours_sizes, torch.tensor(sizes)), 1e-6, note))
        return checks
    checks.append(Check(f"spread of {what} (sigmas)", abs(std / recorded["std"] - 1) / (spread * error), SIGMAS, note))
    if what == "scores":  # bounded: no draw of ours lies outside, and the largest come near
        checks.append(Check("bound of scores, over it", max(0.0, ours.abs().max().item() / size - 1), 20 / ours.numel(), note))
    return checks


PGD = {"name": "pgd", "start": "uniform", "pick": "worst", "bn": "train"}
KINDS = {
    "forward": forward,
    "allocation": allocation,
    "init_stats": init_stats,
    "pgd_train_steps": partial(steps, module=binary_subnet, attack=PGD, trained="scores", attack_checks=pgd_checks),
    "fgsm_atta_steps": partial(steps, module=binary_subnet, attack={"name": "fgsm_atta"}, trained="scores", attack_checks=atta_checks),
    "binaryconnect_steps": partial(steps, module=binaryconnect, attack=PGD, trained="weights", attack_checks=pgd_checks),
    "at_fp_steps": partial(steps, module=at, attack=PGD, trained="weights", attack_checks=pgd_checks),
    "trades_steps": partial(steps, module=trades, attack={"name": "trades", "bn": "eval"}, trained="weights", attack_checks=trades_checks),
}
