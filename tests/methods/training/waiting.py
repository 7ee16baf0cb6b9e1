"""Calls that would make the host wait for a GPU, noticed on the CPU: values read by Python, and shapes that depend on data.

torch has two levels to listen at: what Python calls (a value that is read does not reach the second), and what operators become.
"""

from __future__ import annotations

import traceback
from collections import Counter
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

ROOT = Path(__file__).parents[3]
READS = {getattr(Tensor, n) for n in ("item", "tolist", "numpy", "cpu", "__bool__", "__int__", "__float__", "__index__", "__contains__")}
ATEN = torch.ops.aten
SHAPES = {
    *(ATEN._local_scalar_dense, ATEN.nonzero, ATEN.masked_select, ATEN._unique2, ATEN.unique_dim, ATEN.unique_consecutive),
    *(ATEN.bincount, ATEN.equal, ATEN.is_nonzero),
}
INDEXED = {ATEN.index, ATEN.index_put, ATEN.index_put_, ATEN._index_put_impl_}


class _Reads(TorchFunctionMode):
    def __init__(self, places: Counter[str]):
        super().__init__()
        self.places = places

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function in READS:
            _note(self.places)
        return function(*args, **(kwargs or {}))


class _Shapes(TorchDispatchMode):
    def __init__(self, places: Counter[str]):
        super().__init__()
        self.places = places

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        packet = function.overloadpacket
        masks = packet in INDEXED and any(i is not None and i.dtype in (torch.bool, torch.uint8) for i in args[1])
        if packet in SHAPES or masks or (packet is ATEN.repeat_interleave and "Tensor" in function._overloadname):
            _note(self.places)
        return function(*args, **(kwargs or {}))


def _note(places: Counter[str]) -> None:
    """Count the innermost function of the project. torch's own Adam counts its steps in tensors that stay on the host."""
    frames = [frame for frame in traceback.extract_stack() if "torch/utils/" not in frame.filename and frame.filename != __file__]
    while not (Path(frames[-1].filename).is_relative_to(ROOT) and ".venv" not in frames[-1].filename):
        if "/torch/optim/" in frames.pop().filename:
            return
    places[f"{Path(frames[-1].filename).relative_to(ROOT)}: {frames[-1].name}"] += 1


class Waiting:
    """While active, counts by place the calls that would wait."""

    def __enter__(self) -> Counter[str]:
        places: Counter[str] = Counter()
        self.modes = (_Reads(places), _Shapes(places))
        for mode in self.modes:
            mode.__enter__()
        return places

    def __exit__(self, *error: Any) -> None:
        for mode in reversed(self.modes):
            mode.__exit__(*error)
