"""What the replays on small networks share: a file's arrays, and a method of the suite on a given network."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from math import inf
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch import Tensor, nn

from methods.attacks import pgd
from methods.data.split import Batch
from methods.training.method import Method
from methods.training.optim import optimizer


class Arrays:
    """The arrays of a file as tensors, with its description."""

    def __init__(self, path: Path):
        with np.load(path, allow_pickle=False) as archive:
            self.arrays = {key: archive[key] for key in archive.files}
        self.meta: dict[str, Any] = json.loads(str(self.arrays.pop("meta_json")))

    def __getitem__(self, key: str) -> Tensor:
        return torch.from_numpy(self.arrays[key])

    def __contains__(self, key: str) -> bool:
        return key in self.arrays

    def under(self, prefix: str) -> dict[str, Tensor]:
        """Everything whose key starts so, by the rest of the key."""
        return {key[len(prefix) :]: self[key] for key in self.arrays if key.startswith(prefix)}


def differ(ours: Tensor | list, recorded: Tensor | list) -> float:
    """How many entries differ."""
    ours, recorded = torch.as_tensor(ours).double(), torch.as_tensor(recorded).double()
    return float((ours != recorded).sum()) if ours.shape == recorded.shape else inf


def doubles(numbers: Sequence[float]) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


def largest(difference: Tensor) -> float:
    return difference.abs().max().item() if difference.numel() else 0.0


def declared(keep: float) -> float:
    """The sparsity whose kept fraction is this."""
    return float(1 - Decimal(repr(keep)))


def replayed(method: type[Method], net: nn.Module, spec: dict, samples: int, **parts: Any) -> Method:
    """A method of the suite on a given network, with some of its parts exchanged, and its optimiser."""
    parts = {"build_network": lambda _, data: net, "initialise": lambda _: None, **parts}
    data = SimpleNamespace(train=range(samples), shape=(3, 8, 8))
    made = type(f"Replayed{method.__name__}", (method,), parts)(spec, data, device=torch.device("cpu"))
    made.optimizer = optimizer(made.trainables(), spec["train"])
    return made


@contextmanager
def started_at(method: Method, start: Tensor) -> Iterator[None]:
    """The method's attack starts from the recorded perturbation, a point of the eps box."""
    u = (start / method.eps + 1) / 2
    with mock.patch.object(pgd, "draw_like", lambda *_, **__: u):
        yield


@contextmanager
def attacked_as(method: Method, adversarial: Tensor) -> Iterator[None]:
    """The method's loss is that of the recorded adversarial images."""
    with mock.patch.object(method, "adversarial", lambda batch, draws: (batch.x, adversarial)):
        yield


def batch_of(x: Tensor, y: Tensor) -> Batch:
    return Batch(x, y, torch.arange(len(x)))
