"""Optimisers and learning-rate schedules, set once per epoch as in every official implementation."""

from __future__ import annotations

from collections.abc import Iterable
from math import cos, pi
from typing import Any

import torch
from torch import Tensor

from methods.core.errors import UserError


class SGDW(torch.optim.Optimizer):
    """Momentum SGD with decoupled decay that is not multiplied by the learning rate: w -= decay * w, then v = m v - lr g, w += v.

    The optimiser of BCS (TensorFlow Addons' SGDW). `decay` follows the schedule together with the learning rate.
    """

    def __init__(self, params: Iterable[Tensor], lr: float, momentum: float, weight_decay: float):
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "base_lr": lr})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]  # nothing here evaluates the loss again
        for group in self.param_groups:
            decay = group["weight_decay"] * group["lr"] / group["base_lr"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                velocity = self.state[p].setdefault("velocity", torch.zeros_like(p))
                p.mul_(1 - decay)
                velocity.mul_(group["momentum"]).add_(p.grad, alpha=-group["lr"])
                p.add_(velocity)


def optimizer(params: Iterable[Tensor], train: dict[str, Any]) -> torch.optim.Optimizer:
    """The optimiser of a run's `train` settings. Weight decay acts on every trained tensor: scores, weights, batch-norm parameters."""
    name, lr, decay = train["optimizer"], train["lr"], train["weight_decay"]
    params = list(params)
    if name == "sgd":
        return torch.optim.SGD(params, lr=lr, momentum=train["momentum"], weight_decay=decay)
    if name == "adam":
        return torch.optim.Adam(params, lr=lr, weight_decay=decay)  # decay coupled into the gradient
    if name == "sgdw":
        return SGDW(params, lr=lr, momentum=train["momentum"], weight_decay=decay)
    raise UserError(f"unknown 'train.optimizer: {name}'; allowed: sgd, adam, sgdw")


def learning_rate(train: dict[str, Any], epoch: int) -> float:
    """Learning rate of a 0-based epoch."""
    lr, epochs, warmup = train["lr"], train["epochs"], train.get("warmup", 0)
    if epoch < warmup:
        return lr * (epoch + 1) / warmup
    schedule = train["schedule"]
    if schedule == "cosine":
        return lr * 0.5 * (1 + cos(pi * (epoch - warmup) / (epochs - warmup)))
    if schedule == "cosine_hydra":  # HYDRA's cosine is off by one: epoch 1, not 0, has the full rate and the last epoch is not the smallest
        return lr * 0.5 * (1 + cos(pi * (epoch - 1) / max(epochs, 2)))  # max: a single epoch would have rate 0
    if schedule == "steps":
        return lr * 0.1 ** sum(epoch >= milestone for milestone in train["milestones"])
    raise UserError(f"unknown 'train.schedule: {schedule}'; allowed: cosine, cosine_hydra, steps")
