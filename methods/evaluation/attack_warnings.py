"""AutoAttack's own warnings, caught as data instead of log lines, and its checks of the network."""

from __future__ import annotations

import logging
import sys

from pyautoattack import checks
from torch import Tensor, nn

from methods.evaluation.observer import AttackWarning, Observer

# What each warning of the library says, and the short name under which it is kept.
KINDS = (
    ("randomized defense", "randomized"),
    ("probability distribution", "probabilities"),
    ("dynamic defense", "dynamic"),
    ("zero gradient", "zero_gradient"),
    ("classes", "classes"),
)
# The library runs its checks on a whole batch; they look at properties of the network that show on any image.
CHECKED = 32


class WarningLogger(logging.Logger):
    """The logger that the library writes to while `attack` runs: each warning goes to the observer."""

    def __init__(self, attack: str, observer: Observer):
        super().__init__("evaluation", logging.WARNING)
        self.attack, self.observer = attack, observer

    def handle(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        kind = next((kind for phrase, kind in KINDS if phrase in message), "other")
        self.observer.warn(AttackWarning(kind=kind, attack=self.attack, message=message.split(" See flags_doc")[0]))


def check_network(net: nn.Module, x: Tensor, y: Tensor, observer: Observer) -> None:
    """Is it randomised, does it return probabilities, does it run an optimisation inside?"""
    x, y, logger = x[:CHECKED], y[:CHECKED], WarningLogger("checks", observer)
    checks.check_randomized(net, x, y, bs=len(x), logger=logger)
    checks.check_range_output(net, x, logger=logger)
    # The library counts in a module-level table that it never resets, and leaves no tracer behind but its own: both are put right here.
    checks.funcs.update(dict.fromkeys(checks.funcs, 0))
    tracer = sys.gettrace()
    try:
        checks.check_dynamic(net, x, logger=logger)
    finally:
        sys.settrace(tracer)
