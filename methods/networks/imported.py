"""Networks from model files of the suite, and from weights that others saved; never by running code from the file."""

from __future__ import annotations

import importlib
from pathlib import Path

from torch import nn

from methods.core.errors import UserError
from methods.networks import compact
from methods.networks.fold import fold as folded
from methods.networks.model_file import fill, load_model, load_tensors
from methods.networks.torch_file import SUFFIXES, read_state


def read_network(path: Path | str, maker: str | None = None, *, fold: bool = False) -> nn.Module:
    """The network of a model or compact file, in eval mode; or what `maker` (MODULE:FUNCTION) builds, with the file's weights."""
    path = Path(path)
    if maker is None:
        if fold:
            raise UserError("--fold is for networks of --net; those of the suite are folded anyway")
        if path.suffix in SUFFIXES:
            raise UserError(f"{path}: weights alone; say which network they are of with --net MODULE:FUNCTION, a function that builds it")
        return compact.read(path)[0] if path.suffix == compact.SUFFIX else load_model(path)
    module, _, function = maker.partition(":")
    try:
        net = getattr(importlib.import_module(module), function)()
    except (ImportError, AttributeError, ValueError) as error:
        raise UserError(f"--net {maker}: {error}; give MODULE:FUNCTION of a function without arguments") from error
    fill(net, load_tensors(path)[0] if path.suffix == ".safetensors" else read_state(path), str(path))
    net.eval()
    return folded(net) if fold else net
