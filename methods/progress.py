"""How far an evaluation is: counts, accuracy so far, and a time left that is only claimed when it is known."""

from __future__ import annotations

import sys
import time
from typing import TextIO

QUIET_SECONDS = 30.0


def span(seconds: float) -> str:
    """A duration for a person: 45 s, 12 min, 3 h 20 min."""
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"


class Progress:
    """Counts examples. On a terminal one line that is rewritten; in a log a line now and then; with `stream` None silent.

    The time left is the time per example of the blocks that this process has computed, times the examples that are left: before the first
    block is finished it is unknown, and blocks taken over from an earlier run do not count as speed.
    """

    def __init__(self, total: int, stream: TextIO | None = sys.stderr):
        self.total, self.stream = total, stream
        self.finished = self.robust = 0
        self.measured, self.seconds = 0, 0.0
        self.last = time.monotonic()
        self.terminal = stream is not None and stream.isatty()

    @property
    def left(self) -> float | None:
        """Seconds left, or None while nothing is known."""
        return (self.total - self.finished) * self.seconds / self.measured if self.measured else None

    def attack(self, name: str, block: int, robust: int) -> None:
        self._show(f"block {block}: {robust} robust after {name}", force=False)

    def block(self, examples: int, robust: int, *, computed: float) -> None:
        """A block is finished; `computed` is the time that this process spent on it."""
        self.finished += examples
        self.robust += robust
        if computed > 0:
            self.measured, self.seconds = self.measured + examples, self.seconds + computed
        self._show("", force=self.finished == self.total)

    def _show(self, note: str, *, force: bool) -> None:
        now = time.monotonic()
        if self.stream is None or not (force or self.terminal or now - self.last >= QUIET_SECONDS):
            return
        self.last = now
        done = self.finished == self.total
        accuracy = f", {self.robust} of them unbroken" if self.finished else ""
        left = "" if done else ", time left unknown" if self.left is None else f", about {span(self.left)} left"
        line = f"{self.finished}/{self.total} examples{accuracy}{left}" + (f" ({note})" if note else "")
        end = ("\n" if done else "") if self.terminal else "\n"
        print(f"\r\033[K{line}" if self.terminal else line, end=end, file=self.stream, flush=True)
