"""Methods that train in phases, each a run of its own that starts from what the one before handed over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from methods.core.errors import UserError


def check_phase(phases: Mapping[str, Mapping[str, Any]], spec: Mapping[str, Any], parent: Mapping[str, Tensor] | None) -> str:
    """The phase of a run, one of the RECIPE's `phases`; it has a parent where these say so, and only there."""
    method, phase = spec["method"], spec.get("phase", "none")
    if phase not in phases:
        raise UserError(f"unknown 'phase: {phase}' of method '{method}'; allowed: {', '.join(phases)}")
    before = phases[phase].get("parent")
    if (parent is None) != (before is None):
        start = f"a run of phase '{before}'" if before else "no other run"
        raise UserError(f"phase '{phase}' of method '{method}' starts from {start}; correct 'parent' in its spec")
    return phase
