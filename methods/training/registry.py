"""Methods by name: one module each, of this repository or of an installed package (methods/core/method_files.py)."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

from methods.core.errors import UserError
from methods.core.method_files import locate
from methods.training.method import Method


def load_method(name: str) -> type[Method]:
    """The METHOD class of a method."""
    return _module(name).METHOD


def load_recipe(name: str) -> dict[str, Any]:
    """The RECIPE of a method."""
    return _module(name).RECIPE


def _module(name: str) -> ModuleType:
    file = locate(name)
    module = importlib.import_module(file.module)
    for needed in ("METHOD", "RECIPE"):
        if not hasattr(module, needed):
            raise UserError(f"'method: {name}': {file.path} defines no {needed}")
    return module
