"""Folders whose arrays lie in folders (keys with slashes) beside a JSON description."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from tests.golden.check import rel


class Folder:
    """The arrays of a file under a prefix, as tensors."""

    def __init__(self, arrays: Mapping[str, np.ndarray], prefix: str = ""):
        self.arrays, self.prefix = arrays, prefix

    @classmethod
    def load(cls, path: Path) -> tuple[Folder, dict]:
        """A file's outermost folder and its description."""
        with np.load(path, allow_pickle=False) as file:
            arrays = {key: file[key] for key in file.files}
        return cls(arrays), json.loads(str(arrays["meta_json"]))

    def __getitem__(self, key: str) -> Tensor:
        return torch.from_numpy(np.array(self.arrays[self.prefix + key]))

    def __contains__(self, key: str) -> bool:
        return self.prefix + key in self.arrays

    def get(self, key: str) -> Tensor | None:
        return self[key] if self.prefix + key in self.arrays else None

    def at(self, part: str) -> Folder:
        return Folder(self.arrays, f"{self.prefix}{part}/")

    def names(self) -> list[str]:
        """Every array of the folder, those of folders inside it included."""
        return [key.removeprefix(self.prefix) for key in self.arrays if key.startswith(self.prefix)]

    def dict(self, part: str) -> dict[str, Tensor]:
        return {name: self.at(part)[name] for name in self.at(part).names()}


def unequal(ours: Tensor, recorded: Tensor) -> float:
    """Number of entries that differ."""
    return float((ours != recorded).sum()) if ours.shape == recorded.shape else float("inf")


def worst(ours: dict[str, Tensor], recorded: dict[str, Tensor]) -> tuple[float, str]:
    """Largest relative deviation over the recorded tensors, and whose it is."""
    apart = {name: rel(ours[name].detach().reshape(t.shape), t) for name, t in recorded.items()}
    name = max(apart, key=apart.get)
    return apart[name], name
