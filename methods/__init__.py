"""The scientific library of the suite: data, networks, attacks, training and evaluation, and the paper's own method.

Four names are what most users need: `from methods import evaluate, load_network, load_data, Method`. They are loaded when they are asked
for, so that importing this package does not import torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from methods.data.load import load as load_data
    from methods.evaluate import evaluate
    from methods.networks.imported import read_network as load_network
    from methods.training.method import Method

__all__ = ["Method", "evaluate", "load_data", "load_network"]

_PLACES = {
    "Method": ("methods.training.method", "Method"),
    "load_data": ("methods.data.load", "load"),
    "load_network": ("methods.networks.imported", "read_network"),
}


def __getattr__(name: str) -> Any:
    if name == "evaluate":  # a callable module: importing it puts it here for good
        return import_module("methods.evaluate")
    if name not in _PLACES:
        raise AttributeError(f"module 'methods' has no attribute '{name}'")
    module, attribute = _PLACES[name]
    return getattr(import_module(module), attribute)
