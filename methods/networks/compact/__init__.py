"""Compact files: a pruned network in a few hundred kilobytes, exactly.

The random signs of a network are not stored but drawn again from the seed, by the law that the file names; masks go through a range coder
with an adaptive model of channels and kernels; trained values, batch norms and biases are stored as they are. Reading a file gives the same
tensors, to the bit, and runs nothing that is in it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from methods.core import paths, sealed
from methods.core.errors import UserError
from methods.core.files import write
from methods.networks.compact.container import Header
from methods.networks.compact.reader import decode, read
from methods.networks.compact.writer import Unfit, encode
from methods.networks.model_file import save_model
from methods.networks.resnet import Net

__all__ = ["SUFFIX", "Header", "Unfit", "pack", "packed_size", "read", "run_model", "unpack"]

SUFFIX = ".rbs"


def pack(net: Net, spec: dict[str, Any], path: Path, tensors: dict[str, Tensor] | None = None, *, half: bool = False) -> int:
    """Write a network (or `tensors` of its shape) of the Run `spec` as a compact file; returns its bytes.

    Before it is written the file is read, and must be the same network. `Unfit` where the network is dense or cannot be stored.
    """
    content = encode(net, spec, tensors, half=half)
    back = decode(content, str(path))[0].state_dict()
    for name, tensor in (net.state_dict() if tensors is None else tensors).items():
        if not torch.equal(back[name], tensor.cpu()) and not (half and tensor.ndim == 4):
            raise UserError(f"{path}: was not written: tensor '{name}' does not read back as it is; this is a defect of the program")
    write(path, content)
    return len(content)


def packed_size(net: Net, spec: dict[str, Any], tensors: dict[str, Tensor] | None = None) -> int | None:
    """How many bytes the compact file of a network (or of `tensors` of its shape) has; None where it cannot be packed."""
    try:
        return len(encode(net, spec, tensors))
    except Unfit:
        return None


def unpack(path: Path, out: Path) -> str:
    """Write the model file of a compact file, byte for byte the one that training wrote; returns its SHA-256."""
    net, header = read(path)
    return save_model(net, header.spec, out)


def run_model(folder: Path) -> tuple[Path, str]:
    """The intact model file of a finished Run, and its SHA-256. Results that travelled have the compact file alone: it is unpacked."""
    path, packed = folder / paths.MODEL, folder / paths.COMPACT
    expected = sealed.read(folder / paths.MANIFEST).get("model_sha256")
    if not path.exists() and packed.is_file():
        unpack(packed, path)
    return path, sealed.require(path, expected)
