"""A security curve: robust accuracy against the radius, by APGD on the cross-entropy and on targeted margins with fewer iterations.

Each radius is an evaluation of its own (so that an interrupted curve goes on where it was). An image that breaks within a ball breaks
within every larger one: what the attack misses at a larger radius is taken over from a smaller.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, TextIO

import torch
from torch import nn

from methods.core import eval_spec
from methods.core.errors import UserError
from methods.core.eval_result import CLEAN, ROBUST
from methods.core.eval_spec import EvalSpec
from methods.evaluation.images import Images
from methods.evaluation.runner import Shard, run_shard

FORMAT = 1
FACTORS = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4), Fraction(1), Fraction(3, 2), Fraction(2), Fraction(3), Fraction(4))
L2_RADIUS = "128/255"  # RobustBench's radius for L2 on CIFAR-10
TARGETS = 3


def radii(eps: str) -> list[str]:
    """Eight radii around one such as 8/255: from a quarter to four times of it."""
    top, bottom = eps.split("/")
    return [f"{float(Fraction(top) * factor):g}/{bottom}" for factor in FACTORS]


def specs(radii: Sequence[str], *, norm: str, examples: int, iterations: int, seed: int, block: int, classes: int) -> list[EvalSpec]:
    """The evaluations of a curve, checked like any other."""
    names = ["apgd-ce", "apgd-t"] if classes >= 4 else ["apgd-ce"]
    attack = {"attacks": names, "apgd_iter": iterations, "targets": min(TARGETS, classes - 1)}
    common = {"attack": attack, "norm": norm, "examples": examples, "seed": seed, "block": block}
    return [eval_spec.parse({**common, "eps": radius}) for radius in radii]


def curve(
    net: nn.Module,
    images: Images,
    wanted: Sequence[EvalSpec],
    *,
    model: str,
    device: torch.device,
    work: Path | None = None,
    stream: TextIO | None = None,
) -> tuple[dict[str, Any], list[Shard]]:
    """Clean accuracy, and accuracy at each radius; `least` is for every image the first radius at which it breaks (None: at none).

    The shards are to be cleared once the curve is safe.
    """
    if sorted(wanted, key=lambda spec: spec.radius) != list(wanted):
        raise UserError("the radii of a curve must not fall; give them from the smallest to the largest")
    shards: list[Shard] = []
    least: list[float | None] = []
    passes = 0
    for spec in wanted:
        shard = run_shard(net, images, spec, model=model, device=device, work=work, stream=stream, trust=False)
        shards.append(shard)
        broken = [b for block in shard.blocks for b in block.broken]
        passes += sum(block.passes for block in shard.blocks)
        if not least:
            least = [0.0 if b == CLEAN else None for b in broken]
        least = [spec.radius if first is None and b != ROBUST else first for first, b in zip(least, broken, strict=True)]
    count = len(least)
    accuracy = [sum(first is None or first > spec.radius for first in least) / count for spec in wanted]
    value = {
        "format": FORMAT,
        "norm": wanted[0].norm,
        "radii": [spec.eps for spec in wanted],
        "clean_acc": sum(first != 0.0 for first in least) / count,
        "accuracy": accuracy,
        "least": least,
        "n": count,
        "attack": wanted[0].to_json()["attack"],
        "model": model,
        "passes": passes,
    }
    return value, shards
