"""Is a robust accuracy real? A panel of named checks, each with a verdict, a number and where it comes from. Torch-free.

A robust accuracy is an upper bound: no attack did better. The panel asks whether an attack could have. It is computed with every attacked
evaluation on a few of its images (`methods.evaluation.trust`), costs at most a quarter of it, and stands beside the answers in the same
file; it is no part of the evaluation's identity and changes none of its answers. What the whole evaluation shows (accuracy after each
attack, warnings, what Square broke) is added when its shards are merged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from methods.core.trust_checks import CHECKS, GRADIENT_FREE, GRAVE, MARGIN, SQUARE_MARGIN, Definition

VERSION = 1
PASS, WARN, FAIL, NOT_APPLICABLE = STATES = ("pass", "warn", "fail", "not applicable")
WORST_FIRST = (FAIL, WARN, PASS, NOT_APPLICABLE)


@dataclass(frozen=True, kw_only=True)
class Check:
    """One check: its state, its number (None where it does not apply), a sentence, and on how many images it was made."""

    name: str
    state: str
    number: float | None
    text: str
    images: int = 0
    passes: int = 0

    @property
    def definition(self) -> Definition:
        return CHECKS[self.name]


@dataclass(frozen=True, kw_only=True)
class Panel:
    """All checks of one evaluation in the order of CHECKS; `passes` is what they cost, of `allowed` that they could."""

    checks: tuple[Check, ...]
    passes: int = 0
    allowed: int = 0

    @property
    def state(self) -> str:
        """The worst of all states."""
        return next(state for state in WORST_FIRST if any(check.state == state for check in self.checks) or state == NOT_APPLICABLE)

    def named(self, state: str) -> tuple[str, ...]:
        """The checks in a state."""
        return tuple(check.name for check in self.checks if check.state == state)

    def __getitem__(self, name: str) -> Check:
        return next(check for check in self.checks if check.name == name)

    def to_json(self) -> dict[str, Any]:
        return {"version": VERSION, "state": self.state, "passes": self.passes, "allowed": self.allowed} | {
            "checks": [asdict(check) for check in self.checks]
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Panel:
        """The panel in a shard or in a merged result; checks that this version does not know are left out."""
        checks = tuple(Check(**check) for check in value["checks"] if check["name"] in CHECKS)
        return cls(checks=checks, passes=value["passes"], allowed=value["allowed"])


def of_evaluation(value: Mapping[str, Any]) -> Panel | None:
    """The panel of a merged evaluation: what was measured with it, if anything was, and what its answers show. None where it attacked
    nothing, or does not say for each image what broke it."""
    if not value.get("after") or "broken_by" not in value:
        return None
    codes, examples = value["broken_by"]["codes"], value["broken_by"]["examples"]
    broken = {name: examples.count(str(code)) for code, name in enumerate(codes) if name in value["after"]}
    after = {name: value["after"][name] for name in broken}  # in the order of the attacks
    stored = value.get("trust")
    measured = Panel.from_json(stored) if stored else Panel(checks=tuple(map(_unmeasured, CHECKS)))
    return judged(measured, after, value["clean_acc"], value.get("warnings", ()), broken)


def _unmeasured(name: str) -> Check:
    return Check(name=name, state=NOT_APPLICABLE, number=None, text="not measured: the evaluation was made without the panel")


def overestimate(name: str, broken: int, survivors: int, robust: float, what: str, passes: int) -> Check:
    """The verdict of a further attack on images that withstood the evaluation: how much of the robust accuracy it would take."""
    if survivors == 0:
        return Check(name=name, state=PASS, number=0.0, text="no image withstood the evaluation: nothing is left to break", passes=passes)
    drop = broken / survivors * robust
    state = PASS if broken == 0 else WARN if drop <= MARGIN else FAIL
    text = f"{what} broke {broken} of {survivors} images that withstood the evaluation: about {100 * drop:.1f} points of robust accuracy"
    return Check(name=name, state=state, number=drop, text=text, images=survivors, passes=passes)


def judged(
    measured: Panel, after: Mapping[str, float], clean: float, warnings: Sequence[Mapping[str, Any]], broken: Mapping[str, int]
) -> Panel:
    """The measured panel with what the whole evaluation shows; `broken` is how many images each attack broke."""
    checks = {check.name: check for check in measured.checks}
    checks["attacks"] = _attacks(after, clean, broken)
    checks["warnings"] = _warnings(warnings)
    if GRADIENT_FREE in after and len(after) > 1:
        checks["square"] = _square(after)
    ordered = tuple(checks[name] for name in CHECKS if name in checks)
    if not _left(after):
        ordered = tuple(map(_of_none_left, ordered))
    return Panel(checks=ordered, passes=measured.passes, allowed=measured.allowed)


def _left(after: Mapping[str, float]) -> float:
    """The robust accuracy: what the last attack left."""
    return list(after.values())[-1]


def _of_none_left(check: Check) -> Check:
    """A check of an evaluation that no image withstood. Whether zero is too high is no question; whether answers change still is one."""
    settled = check.state in (PASS, NOT_APPLICABLE)
    if settled or check.name == "randomness" or (check.name == "warnings" and check.state == FAIL):
        return check
    return replace(check, state=NOT_APPLICABLE, text=f"{check.text}; but no image withstood the evaluation: zero cannot be too high")


def _attacks(after: Mapping[str, float], clean: float, broken: Mapping[str, int]) -> Check:
    steps = [f"clean {100 * clean:.1f} %", *(f"{name} {100 * acc:.1f} % (broke {broken[name]})" for name, acc in after.items())]
    alone = set(after) <= {"pgd", "apgd-ce"}
    more = "; only the cross-entropy was attacked: no other loss, and nothing without gradients" if alone else ""
    return Check(name="attacks", state=WARN if alone else PASS, number=_left(after), text=", ".join(steps) + more)


def _warnings(warnings: Sequence[Mapping[str, Any]]) -> Check:
    kinds = sorted({str(warning["kind"]) for warning in warnings} - {"memory", GRADIENT_FREE})  # Square has a check of its own
    state = FAIL if set(kinds) & set(GRAVE) else WARN if kinds else PASS
    return Check(name="warnings", state=state, number=float(len(kinds)), text=", ".join(kinds) if kinds else "none")


def _square(after: Mapping[str, float]) -> Check:
    gain = min(acc for name, acc in after.items() if name != GRADIENT_FREE) - after[GRADIENT_FREE]
    gain = max(round(gain, 9), 0.0)  # a difference of fractions: just two in a thousand are not more than that
    state = PASS if gain <= SQUARE_MARGIN else WARN if gain <= MARGIN else FAIL
    return Check(name="square", state=state, number=gain, text=f"Square broke {100 * gain:.2f} points that the other attacks had not")
