"""What a recorded attack on a network says: iterates, losses, signs, statistics. One function per attack, for a `Replay` that has just
been through it."""

from __future__ import annotations

from math import inf

import torch
import torch.nn.functional as F
from torch import Tensor

from methods.attacks.pgd import kl_sum
from methods.data.split import Batch
from tests.golden.check import Check, rel
from tests.golden.recorded import Replay, Seen

EXACT = 0.0
STATISTICS = 2e-6


def mismatches(ours: Tensor, recorded: Tensor) -> float:
    """How many entries differ."""
    if ours.shape != recorded.shape:
        return inf
    return float((ours.double() != recorded.double()).sum())


def apart(ours: Tensor, recorded: Tensor) -> float:
    """Largest absolute difference."""
    return (ours - recorded).abs().max().item()


def other_signs(replay: Replay, step: str, tolerances: list[float]) -> list[Check]:
    recorded = replay.recording.tensor(f"{step}attack_sign")
    recorded = recorded if recorded.ndim == 5 else recorded[None]
    shares = [(ours != theirs).float().mean().item() for ours, theirs in zip(replay.signs, recorded[: len(replay.signs)], strict=True)]
    pairs = zip(shares, tolerances, strict=True)
    names = {True: "share of other signs", False: "share of other signs at noise"}
    return [Check(names[allowed < 0.01], share, allowed, f"{step} iterate {t}") for t, (share, allowed) in enumerate(pairs)]


def pgd_checks(replay: Replay, step: str, batch: Batch) -> list[Check]:
    """PGD: the first forwards are the iterates, the last one is that of the chosen images."""
    recording = replay.recording
    iterates, final = replay.seen[: replay.method.spec["attack"]["steps"]], replay.seen[-1].x
    losses = torch.stack([F.cross_entropy(seen.logits, batch.y, reduction="none") for seen in iterates])
    chosen = recording.tensor(f"{step}best_iterate").tolist()
    right = [torch.equal(iterates[t].x[b], final[b]) for b, t in enumerate(chosen)]
    checks = [
        Check("attack losses", rel(losses, recording.tensor(f"{step}attack_loss")), 1e-5, step),
        Check("chosen iterates", float(len(right) - sum(right)), EXACT, step),
        *other_signs(replay, step, [1e-3] * len(replay.signs)),
        Check("adversarial images, absolute", apart(final, recording.tensor(f"{step}x_adv")), 1e-6, step),
    ]
    return checks + after_attack(replay, step, iterates[-1])


def after_attack(replay: Replay, step: str, last: Seen) -> list[Check]:
    if f"{step}bn_mean_after_attack" not in replay.recording:
        return []
    recorded = [replay.recording.tensor(f"{step}bn_{name}_after_attack") for name in ("mean", "var")]
    return [
        Check("running mean after the attack", rel(last.bn_mean, recorded[0]), STATISTICS, step),
        Check("running variance after the attack", rel(last.bn_var, recorded[1]), STATISTICS, step),
    ]


def atta_checks(replay: Replay, step: str, batch: Batch) -> list[Check]:
    recording, canvas = replay.recording, replay.method.attack.canvas.store[batch.index]
    return [
        Check("attack logits", rel(replay.seen[0].logits, recording.tensor(f"{step}attack_logits")), 2e-4, step),
        *other_signs(replay, step, [1e-3]),
        Check("canvas, absolute", apart(canvas, recording.tensor(f"{step}canvas_after")), 1e-6, step),
        Check("adversarial images, absolute", apart(replay.seen[-1].x, recording.tensor(f"{step}x_adv")), 1e-6, step),
        *after_attack(replay, step, replay.seen[0]),
    ]


def trades_checks(replay: Replay, step: str, batch: Batch) -> list[Check]:
    """TRADES: clean images in eval mode, the iterates, then clean and adversarial images in train mode."""
    recording, steps = replay.recording, replay.method.spec["attack"]["steps"]
    clean, *iterates = replay.seen[: 1 + steps]
    divergences = torch.stack([kl_sum(F.softmax(clean.logits, 1), seen.logits) for seen in iterates])
    return [
        Check("clean logits in eval mode", rel(clean.logits, recording.tensor(f"{step}logits_clean_eval")), 2e-5, step),
        Check("attack divergences", rel(divergences, recording.tensor(f"{step}attack_kl")), 1e-5, step),
        *other_signs(replay, step, [0.1] + [1e-3] * (steps - 1)),
        Check("first iterate, absolute", apart(iterates[1].x, recording.tensor(f"{step}x1")), 1e-6, step),
        Check("adversarial images, absolute", apart(replay.seen[-1].x, recording.tensor(f"{step}x_adv")), 1e-6, step),
        Check("adversarial logits", rel(replay.seen[-1].logits, recording.tensor(f"{step}logits_adv")), 2e-4, step),
    ]
