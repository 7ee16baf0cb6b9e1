"""Networks from model files of the suite, and from weights that others saved; never by running code from the file."""

from __future__ import annotations

import importlib
import pickle
from pathlib import Path

import torch
from torch import Tensor, nn

from methods.core.errors import UserError
from methods.networks import compact
from methods.networks.fold import fold as folded
from methods.networks.model_file import fill, load_model, load_tensors


def read_network(path: Path | str, maker: str | None = None, *, fold: bool = False) -> nn.Module:
    """The network of a model or compact file, in eval mode; or what `maker` (MODULE:FUNCTION) builds, with the file's weights."""
    path = Path(path)
    if maker is None:
        if fold:
            raise UserError("--fold is for networks of --net; those of the suite are folded anyway")
        return compact.read(path)[0] if path.suffix == compact.SUFFIX else load_model(path)
    module, _, function = maker.partition(":")
    try:
        net = getattr(importlib.import_module(module), function)()
    except (ImportError, AttributeError, ValueError) as error:
        raise UserError(f"--net {maker}: {error}; give MODULE:FUNCTION of a function without arguments") from error
    fill(net, load_tensors(path)[0] if path.suffix == ".safetensors" else read_weights(path), str(path))
    net.eval()
    return folded(net) if fold else net


def read_weights(path: Path) -> dict[str, Tensor]:
    """The tensors of a file written by torch.save, loaded without running code from it."""
    try:
        tensors = torch.load(path, weights_only=True, map_location="cpu")
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except (OSError, RuntimeError, EOFError, ValueError, KeyError, pickle.UnpicklingError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(f"{path}: not a complete file of tensors ({reason})") from error
    if not isinstance(tensors, dict) or not all(isinstance(t, Tensor) for t in tensors.values()):
        raise UserError(f"{path}: holds {type(tensors).__name__}, not a dictionary of tensors; save `net.state_dict()` alone")
    return tensors
