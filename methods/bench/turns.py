"""Calls timed by turns in one process, and the check that their answers are the same: a ratio means nothing without both."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from methods.core.errors import UserError

ROUNDING = 1e-2  # of gradients: a ReLU at zero may round to either side
NEGLIGIBLE = 1e-4  # relative: a layer or two of rounding


def turns(calls: dict[str, Callable[[], Any]], repeats: int) -> dict[str, list[float]]:
    """Seconds of each call, by turns; the first of each is not counted."""
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(repeats + 1):
        for name, call in calls.items():
            started = clock()
            call()
            if turn:
                seconds[name].append(clock() - started)
    return seconds


def compared(calls: dict[str, Callable[[], Any]], repeats: int) -> dict[str, Any]:
    """Seconds of each call, and how many times faster the last one is than each of the others."""
    seconds = turns(calls, repeats)
    *others, ours = calls
    ratios = {name: [a / b for a, b in zip(seconds[name], seconds[ours], strict=True)] for name in others}
    return {"seconds": seconds, "ratio": {name: statistics.median(values) for name, values in ratios.items()}, "n": repeats}


def agree(what: str, ours: Tensor, theirs: Tensor, rounding: float = ROUNDING) -> None:
    """Stop where the median over rows of the relative difference is more than rounding: such a ratio would mean nothing."""
    apart = _apart(ours, theirs)
    if not apart < rounding:
        raise UserError(f"{what} of the two sides differ by {apart:.1e} (median); no ratio is taken")


def as_close(what: str, ours: Tensor, theirs: Tensor, exact: Tensor) -> None:
    """Stop where ours is further than twice theirs from what double precision gives: deep networks amplify rounding by themselves."""
    mine, other = _apart(ours, exact), _apart(theirs, exact)
    if not mine < 2 * other + NEGLIGIBLE:
        raise UserError(f"{what} are {mine:.1e} from those in double precision, the other side's {other:.1e} (medians); no ratio is taken")


def _apart(ours: Tensor, theirs: Tensor) -> float:
    difference = (ours.double() - theirs.double()).flatten(1).norm(dim=1)
    return float((difference / theirs.double().flatten(1).norm(dim=1).clamp(min=1e-12)).median())
