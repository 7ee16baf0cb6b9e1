"""How far an evaluation is: counts, accuracy so far, and a time left that is only claimed when something is known about it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TextIO

from methods.core.durations import span

LOG_SECONDS, TERMINAL_SECONDS = 30.0, 0.2


class Progress:
    """Counts examples. On a terminal one line that is rewritten; in a log a line now and then; with `stream` None silent.

    Attacks end early where they succeed, so that work ahead can only be bounded: `passes` is the most that an example can cost, in passes
    through the network. Until a block is finished the time left is such a bound ("at most"); then it is the time per example of the blocks
    that this process has computed (blocks taken over from an earlier run say nothing about speed).
    """

    def __init__(self, total: int, stream: TextIO | None = sys.stderr, *, passes: int = 0, clock: Callable[[], float] = time.monotonic):
        self.total, self.stream, self.passes, self.clock = total, stream, passes, clock
        self.finished = self.robust = 0  # examples
        self.measured, self.seconds = 0, 0.0  # examples of the blocks computed here, and their time
        self.done = 0  # passes done here, since the start
        self.current, self.ahead = 0, 0  # examples of the block at work, and passes that it can still cost
        self.note = ""
        self.start = self.last = clock()
        self.terminal = stream is not None and stream.isatty()

    @property
    def left(self) -> tuple[float, bool] | None:
        """Seconds left, and whether that is only a bound; None while nothing is known."""
        waiting = self.total - self.finished - self.current
        per_pass = (self.clock() - self.start) / self.done if self.done else None
        if self.measured:
            return waiting * self.seconds / self.measured + self.ahead * (per_pass or 0.0), False
        return None if per_pass is None else ((waiting * self.passes + self.ahead) * per_pass, True)

    def attack(self, name: str, block: int, examples: int, robust: int, *, passes: int) -> None:
        """An attack begins on the `robust` points that are left of a block; it and those after it take at most so many passes."""
        self.current, self.ahead, self.note = examples, passes, f"block {block}: {name} on {robust} of {examples}"
        self._show()

    def tick(self, passes: int) -> None:
        self.done += passes
        self.ahead = max(0, self.ahead - passes)
        self._show()

    def block(self, examples: int, robust: int, *, computed: float) -> None:
        """A block is finished; `computed` is the time that this process spent on it."""
        self.finished += examples
        self.robust += robust
        self.current, self.ahead, self.note = 0, 0, ""
        if computed > 0:
            self.measured, self.seconds = self.measured + examples, self.seconds + computed
        self._show(force=self.finished == self.total)

    def _show(self, *, force: bool = False) -> None:
        if self.stream is None or not (force or self.clock() - self.last >= (TERMINAL_SECONDS if self.terminal else LOG_SECONDS)):
            return
        self.last = self.clock()
        over = self.finished == self.total
        line = f"{self.finished}/{self.total} examples" + (f", {self.robust} of them unbroken" if self.finished else "")
        if not over:
            known = self.left
            line += ", time left unknown" if known is None else f", {'at most' if known[1] else 'about'} {span(known[0])} left"
        line += f" ({self.note})" if self.note else ""
        if self.terminal:
            print(f"\r\033[K{line}", end="\n" if over else "", file=self.stream, flush=True)
        else:
            print(line, file=self.stream, flush=True)
