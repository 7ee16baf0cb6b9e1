"""A sign of life: how far a training is, in a small file that others may read while it runs, and on a terminal.

Nothing depends on the file: it is written without waiting for the disk, at most every few seconds, and goes with the run's state folder.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from methods.core.durations import span
from methods.runtime.progress import TERMINAL_SECONDS

FILE_SECONDS = 3.0


class Heartbeat:
    """Counts optimiser steps of a run; `done` of them were made by earlier processes, which say nothing about this one's speed.

    Without a path and a stream it keeps to itself.
    """

    def __init__(
        self,
        path: Path | None,
        *,
        epochs: int,
        steps: int,
        done: int = 0,
        stream: TextIO | None = sys.stderr,
        clock: Callable[[], float] = time.time,
    ):
        self.path, self.epochs, self.steps, self.begun, self.clock = path, epochs, steps, done, clock
        self.terminal = stream if stream is not None and stream.isatty() else None
        self.started = clock()
        self.written = self.shown = float("-inf")
        self.beat(done)

    def beat(self, done: int) -> None:
        """So many optimiser steps of the whole run are done."""
        now = self.clock()
        if now - self.written >= FILE_SECONDS:
            self.written = now
            self._write(done, now)
        if self.terminal and now - self.shown >= TERMINAL_SECONDS:
            self.shown = now
            print(f"\r\033[K{self._line(done, now)}", end="", file=self.terminal, flush=True)

    def clear(self) -> None:
        """Make room on the terminal for a line of the log."""
        if self.terminal:
            print("\r\033[K", end="", file=self.terminal, flush=True)

    def _write(self, done: int, now: float) -> None:
        if self.path is None:
            return
        counts = {"epochs": self.epochs, "steps": self.steps, "done": done, "begun": self.begun}
        value = {**counts, "started": self.started, "updated": now, "pid": os.getpid(), "host": platform.node()}
        temporary = self.path.with_name(f".{self.path.name}")  # one name: the state folder is locked by this process
        with contextlib.suppress(OSError):  # a full disk will be heard of when something that matters is saved
            temporary.write_text(json.dumps(value))
            temporary.replace(self.path)

    def _line(self, done: int, now: float) -> str:
        line = f"epoch {min(done // self.steps + 1, self.epochs)}/{self.epochs}, step {done % self.steps}/{self.steps}"
        if done > self.begun:
            left = (self.epochs * self.steps - done) * (now - self.started) / (done - self.begun)
            line += f", about {span(left)} left"
        return line
