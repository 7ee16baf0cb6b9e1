"""Merged evaluations with a trust panel, in the suite's own format; what stands in them is chosen by the caller."""

from __future__ import annotations

from pathlib import Path

from methods.core import eval_spec, paths, sealed
from methods.core.eval_result import BlockResult, summarise
from methods.core.trust import Check, Panel
from workflow.suite.planning.plan import Plan

ATTACK = {"attacks": ["apgd-ce", "apgd-t", "square"], "apgd_iter": 10, "targets": 3, "square_queries": 100}


def evaluate(plan: Plan, run: str, folder: Path, counts: dict[str, int], *, attack=ATTACK, panel: Panel | None = None, warnings=()) -> dict:
    """An evaluation of as many images as `counts` says were broken by each attack ("none" and "clean" among them)."""
    broken = tuple(name for name, count in counts.items() for _ in range(count))
    block = BlockResult(number=0, broken=broken, warnings=tuple(warnings))
    value = summarise(eval_spec.parse({"attack": attack, "eps": "8/255"}), [block], data="Some images", trust=panel).to_json()
    path = folder / paths.evaluation(run, plan.evaluations[run].id)
    path.parent.mkdir(parents=True, exist_ok=True)
    sealed.write(path, value)
    return value


def measured(**states: str) -> Panel:
    """A measured panel whose checks have these states."""
    checks = [Check(name=name, state=state, number=0.25, text=f"the sentence of {name}", images=8) for name, state in states.items()]
    return Panel(checks=tuple(checks), passes=10, allowed=20)
