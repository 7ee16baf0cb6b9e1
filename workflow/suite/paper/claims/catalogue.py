"""All claims, in their order."""

from types import ModuleType

from workflow.suite.paper.claims import ablation, against, clean, effects, formulas, grid, printing, proofs, structure
from workflow.suite.paper.claims.claim import Claim
from workflow.suite.paper.claims.evidence import Evidence, Paper
from workflow.suite.paper.claims.verdicts import Judgement

FIXED = (formulas, proofs)  # the same whatever was measured
MODULES = (grid, ablation, against, effects, clean, structure, formulas, proofs, printing)


def claims() -> list[Claim]:
    """Every claim that a module defines."""
    defined = [item for module in MODULES for item in _defined(module)]
    return sorted(defined, key=lambda item: int(item.id[1:]))


def judge(evidence: Evidence) -> dict[str, Judgement]:
    """Claim id -> verdict. Claims that no measurement can change are judged on the paper alone."""
    judgements = {item.id: item.judge(evidence) for item in claims() if isinstance(evidence, Paper) or item.id not in fixed()}
    elsewhere = Judgement(verdict="not about results", numbers="about a formula")
    return {item.id: judgements.get(item.id, elsewhere) for item in claims()}


def fixed() -> set[str]:
    """The ids of claims that no measurement can change."""
    return {item.id for module in FIXED for item in _defined(module)}


def _defined(module: ModuleType) -> list[Claim]:
    return [item for item in vars(module).values() if isinstance(item, Claim)]
