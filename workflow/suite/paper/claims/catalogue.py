"""All claims, in their order."""

from types import ModuleType

from workflow.suite.paper.claims import ablation, against, clean, effects, formulas, grid, printing, proofs, structure
from workflow.suite.paper.claims.claim import Claim, Judgement
from workflow.suite.paper.claims.evidence import Evidence

FIXED = (formulas, proofs)  # the same whatever was measured
MODULES = (grid, ablation, against, effects, clean, structure, formulas, proofs, printing)


def claims() -> list[Claim]:
    """Every claim that a module defines."""
    found = [item for module in MODULES for item in _defined(module)]
    return sorted(found, key=lambda item: int(item.id[1:]))


def judge(evidence: Evidence) -> dict[str, Judgement]:
    """Claim id -> verdict."""
    return {item.id: item.judge(evidence) for item in claims()}


def fixed() -> set[str]:
    """The ids of claims that no measurement can change."""
    return {item.id for module in FIXED for item in _defined(module)}


def _defined(module: ModuleType) -> list[Claim]:
    return [item for item in vars(module).values() if isinstance(item, Claim)]
