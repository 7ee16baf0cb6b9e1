"""Who is told how an attack on a block goes: what begins, what it costs, what it broke, what the library warns of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict


class AttackWarning(TypedDict):
    """A warning as data: a short name, what was running ("checks" before the first attack), and a sentence."""

    kind: str
    attack: str
    message: str


class Observer:
    """One listener for all that happens in a block. This one does not care; others override what they want to hear."""

    def begin(self, attack: str, robust: int) -> None:
        """An attack begins on so many examples that nothing has broken yet."""

    def passes(self, count: int) -> None:
        """The network has computed so many passes: one per image, and one more where a gradient is wanted."""

    def warn(self, warning: AttackWarning) -> None:
        """The library, or one of its checks, has a doubt."""

    def end(self, attack: str, broken: Sequence[str]) -> None:
        """An attack is over; `broken` is what has broken each example of the block so far."""
