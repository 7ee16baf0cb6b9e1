"""AutoAttack's own warnings, caught as data instead of log lines, and its checks of the network."""

from __future__ import annotations

import logging
import sys
from typing import Any

from pyautoattack import checks
from torch import Tensor, nn

# What each warning of the library says, and the short name under which it is kept.
KINDS = (
    ("randomized defense", "randomized"),
    ("probability distribution", "probabilities"),
    ("dynamic defense", "dynamic"),
    ("zero gradient", "zero_gradient"),
    ("Square Attack has decreased", "square"),
    ("classes", "classes"),
)
# The library runs its checks on a whole batch; they look at properties of the network that show on any image.
CHECKED = 32


class Collector(logging.Logger):
    """A logger that keeps warnings: {"kind", "attack", "message"}; `attack` is what was running ("checks" before the first attack)."""

    def __init__(self) -> None:
        super().__init__("evaluation", logging.WARNING)
        self.warnings: list[dict[str, Any]] = []
        self.attack = "checks"

    def handle(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        kind = next((kind for phrase, kind in KINDS if phrase in message), "other")
        self.keep(kind, message.split(" See flags_doc")[0])

    def keep(self, kind: str, message: str) -> None:
        self.warnings.append({"kind": kind, "attack": self.attack, "message": message})

    def check_network(self, net: nn.Module, x: Tensor, y: Tensor) -> None:
        """Is it randomised, does it return probabilities, does it run an optimisation inside?"""
        x, y = x[:CHECKED], y[:CHECKED]
        checks.check_randomized(net, x, y, bs=len(x), logger=self)
        checks.check_range_output(net, x, logger=self)
        # The library counts in a module-level table that it never resets, and leaves no tracer behind but its own: both are put right here.
        checks.funcs.update(dict.fromkeys(checks.funcs, 0))
        tracer = sys.gettrace()
        try:
            checks.check_dynamic(net, x, logger=self)
        finally:
            sys.settrace(tracer)

    def check_square(self, accuracy: dict[str, float]) -> None:
        self.attack = "square"
        checks.check_square_sr(accuracy, logger=self)
