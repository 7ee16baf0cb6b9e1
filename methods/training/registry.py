"""Methods by name: one file each, in methods/ or baselines/."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

from methods.core.errors import UserError
from methods.training.method import Method


def load_method(name: str) -> type[Method]:
    """The METHOD class of methods/<name>.py or baselines/<name>.py."""
    return _method_module(name).METHOD


def load_recipe(name: str) -> dict[str, Any]:
    """The RECIPE of methods/<name>.py or baselines/<name>.py."""
    return _method_module(name).RECIPE


def _method_module(name: str) -> ModuleType:
    for package in ("methods", "baselines"):
        try:
            module = importlib.import_module(f"{package}.{name}")
        except ModuleNotFoundError as error:
            if error.name not in (package, f"{package}.{name}"):
                raise
            continue
        if hasattr(module, "METHOD"):
            return module
    raise UserError(f"unknown 'method: {name}': neither methods/{name}.py nor baselines/{name}.py defines METHOD")
