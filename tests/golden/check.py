"""One comparison of a replay with its recording."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Check(NamedTuple):
    """How far a quantity is from the recorded one, and how far it may be."""

    quantity: str
    deviation: float
    tolerance: float
    note: str = ""

    @property
    def passed(self) -> bool:
        return self.deviation <= self.tolerance  # a NaN deviation does not pass


def rel(a: Tensor, b: Tensor) -> float:
    """Largest absolute difference over the largest magnitude of the recording b; infinite if anything is not a number."""
    a, b = torch.as_tensor(a).double(), torch.as_tensor(b).double()
    if a.shape != b.shape:
        raise ValueError(f"shapes differ: {tuple(a.shape)} replayed, {tuple(b.shape)} recorded")
    difference = (a - b).abs().max().item() if b.numel() else 0.0
    if difference != difference:
        return float("inf")
    return difference / max(b.abs().max().item(), 1e-300) if difference else 0.0


class Unreadable(Exception):
    """A file that is not a recording; the message names it."""
