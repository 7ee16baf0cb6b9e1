"""What a training leaves behind: its history, the network of its best epoch, and the state that other runs start from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from methods.training.method import Method


def copied(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Copies on the CPU, which further training does not reach."""
    return {name: t.detach().to("cpu", copy=True) for name, t in tensors.items()}


@dataclass(kw_only=True)
class Outcome:
    """What training leaves behind."""

    history: list[dict[str, Any]] = field(default_factory=list)
    best: dict[str, Any] = field(default_factory=dict)  # epoch, robust, tensors, report
    handed_over: dict[str, Tensor] = field(default_factory=dict)

    def add(self, record: dict[str, Any], method: Method) -> None:
        """Take down an epoch; keep its network if it is the best so far. Strictly better: of equal epochs the first is deployed."""
        self.history.append(record)
        selects = f"val_{method.spec['validate'].get('by', 'robust')}"
        if self.best and not record[selects] > self.history[self.best["epoch"]][selects]:
            return
        self.best = deployable(method, epoch=record["epoch"], robust=record["val_robust"])
        if method.hands_over == "best":
            self.handed_over = copied(method.tensors())

    def end(self, method: Method) -> None:
        """After the last epoch: the state to hand over, where it is not that of the best one."""
        if method.hands_over == "last":
            self.handed_over = copied(method.tensors())


def deployable(method: Method, *, epoch: int | None, robust: float) -> dict[str, Any]:
    """The network that is validated, as it is now; without an epoch where nothing was trained."""
    return {"epoch": epoch, "robust": robust, "tensors": copied(method.validated().state_dict()), "report": method.report()}
