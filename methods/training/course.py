"""Where a training is: the next step, the sums of the epoch at work, what it has reached; saved, and taken up again."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from torch import Tensor

from methods.core.errors import UserError
from methods.runtime.stopwatch import Stopwatch
from methods.sparse.choice import taken_up
from methods.training.method import Method
from methods.training.optim import learning_rate
from methods.training.outcome import Outcome
from methods.training.resume import Resume


class Stopped(Exception):
    """Training was asked to stop and has saved its state."""


class Course:
    """The course of one training. It begins where the saved state of this run ends, if there is one."""

    def __init__(self, method: Method, resume: Resume, watch: Stopwatch, say: Callable[[str], None]):
        self.method, self.resume, self.watch = method, resume, watch
        self.epoch = self.step = 0  # the next to be done
        self.sums: dict[str, Tensor] = {}  # over the images of this epoch so far
        self.outcome = Outcome()
        if (state := resume.load()) is not None:
            self.epoch, self.step = state["epoch"], state["step"]
            self.sums = {name: total.to(method.device) for name, total in state["sums"].items()}
            self.outcome = Outcome(history=state["history"], best=state["best"], handed_over=state["handed_over"])
            method.load_state(state["method"])
            watch.resume(state.get("spent"))
            say(f"resumed at epoch {self.epoch}, step {self.step}")
            began = state["engine"]
            method.engine = taken_up(began, method.engine)
            if method.engine != began:
                say(f"note: the {method.engine} engine goes on with what the {began} one began: the same to rounding, not bit for bit")
        self.saved_at = time.monotonic()

    @property
    def done(self) -> int:
        """Optimiser steps of the whole run that are done."""
        return self.epoch * self.method.epoch_steps + self.step

    def count(self, sums: dict[str, Tensor]) -> None:
        """One more step is done."""
        self.step += 1
        for name, value in sums.items():
            self.sums[name] = self.sums.get(name, 0) + value

    def save(self) -> None:
        outcome = self.outcome
        here = {"epoch": self.epoch, "step": self.step, "sums": self.sums, "history": outcome.history, "best": outcome.best}
        self.resume.save(
            here
            | {"handed_over": outcome.handed_over, "method": self.method.state(), "spent": self.watch.read(), "engine": self.method.engine}
        )
        self.saved_at = time.monotonic()

    def close_epoch(self) -> dict[str, float]:
        """The history record of the epoch, so far without validation. A loss that is no number ends the training."""
        record = {"epoch": self.epoch, "lr": learning_rate(self.method.spec["train"], self.epoch)}
        record |= {f"train_{name}": (total / self.method.epoch_images).item() for name, total in self.sums.items()}
        if not math.isfinite(record["train_loss"]):
            raise UserError(f"training diverged: the loss of epoch {self.epoch} is {record['train_loss']}; lower 'train.lr'")
        self.epoch, self.step, self.sums = self.epoch + 1, 0, {}
        return record
