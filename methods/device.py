"""Where a run computes."""

from __future__ import annotations

import os

import torch

from methods.errors import UserError

DEVICES = ("auto", "cpu", "cuda")


def device() -> torch.device:
    """The device named by SUITE_DEVICE: auto (a GPU if there is one), cpu, or cuda (an error without one)."""
    wanted = os.environ.get("SUITE_DEVICE", "auto")
    if wanted not in DEVICES:
        raise UserError(f"SUITE_DEVICE={wanted}; allowed: {', '.join(DEVICES)}")
    if wanted == "cuda" and not torch.cuda.is_available():
        raise UserError(
            "this scale needs a GPU and torch sees none; choose a smaller scale, or pass --config allow_cpu=true to train on the CPU"
        )
    return torch.device("cuda" if wanted != "cpu" and torch.cuda.is_available() else "cpu")
