"""Is a robust accuracy real? A panel of named checks, each with a verdict, a number and where it comes from. Torch-free.

A robust accuracy is an upper bound: no attack did better. The panel asks whether an attack could have. It is computed with every attacked
evaluation on a few of its images (`methods.evaluation.trust`), costs at most a quarter of it, and stands beside the answers in the same
file; it is no part of the evaluation's identity and changes none of its answers. What the whole evaluation shows (accuracy after each
attack, warnings, what Square broke) is added when its shards are merged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

VERSION = 1
PASS, WARN, FAIL, NOT_APPLICABLE = STATES = ("pass", "warn", "fail", "not applicable")
WORST_FIRST = (FAIL, WARN, PASS, NOT_APPLICABLE)

MARGIN = 0.02  # a further attack may lower the robust accuracy by so much, as the sample shows it, before the number is called wrong
SQUARE_MARGIN = 0.002  # the library warns where Square takes more than this share of the images after the other attacks
LEAST_SUCCESS = 0.95  # share of planted adversarial images that an attack has to find
GRAVE = ("randomized", "dynamic")  # warnings of the library that put the whole evaluation in question
GRADIENT_FREE = "square"

CROCE = "Croce and Hein, ICML 2020 (arXiv:2003.01690)"
CARLINI = "Carlini et al. 2019, On evaluating adversarial robustness (arXiv:1902.06705)"
ATHALYE = "Athalye, Carlini and Wagner, ICML 2018"
GUPTA = "Gupta and Ajanthan 2021 (arXiv:2003.13511)"
ZIMMERMANN = "Zimmermann et al., NeurIPS 2022"


@dataclass(frozen=True, kw_only=True)
class Definition:
    """A check of the panel: what it asks, what its number is, and who proposed it."""

    question: str
    number: str
    citation: str


CHECKS = {
    "attacks": Definition(question="Did attacks of several kinds agree?", number="robust accuracy after all attacks", citation=CROCE),
    "warnings": Definition(question="Did AutoAttack itself have doubts?", number="kinds of warnings", citation=CROCE),
    "square": Definition(
        question="Does an attack without gradients break what gradients did not?",
        number="robust accuracy that it took",
        citation=CROCE,
    ),
    "randomness": Definition(
        question="Does the network answer twice alike?", number="share of images whose logits changed", citation=ATHALYE
    ),
    "gradients": Definition(
        question="Has the loss a gradient with respect to the image?", number="share of images without one", citation=CARLINI
    ),
    "temperature": Definition(
        question="Does APGD break more when logits are divided by their spread?", number="robust accuracy that it took", citation=GUPTA
    ),
    "iterations": Definition(
        question="Do twice the iterations from other starts break more?", number="robust accuracy that they took", citation=CARLINI
    ),
    "large_radius": Definition(
        question="Does nothing withstand a radius of 0.5?", number="share of images that withstand it", citation=CARLINI
    ),
    "binarisation": Definition(
        question="Does the attack find adversarial images that were planted?", number="share of them that it found", citation=ZIMMERMANN
    ),
}


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
    return Panel(checks=ordered, passes=measured.passes, allowed=measured.allowed)


def _attacks(after: Mapping[str, float], clean: float, broken: Mapping[str, int]) -> Check:
    steps = [f"clean {100 * clean:.1f} %", *(f"{name} {100 * acc:.1f} % (broke {broken[name]})" for name, acc in after.items())]
    alone = set(after) <= {"pgd", "apgd-ce"}
    more = "; only the cross-entropy was attacked: no other loss, and nothing without gradients" if alone else ""
    return Check(name="attacks", state=WARN if alone else PASS, number=list(after.values())[-1], text=", ".join(steps) + more)


def _warnings(warnings: Sequence[Mapping[str, Any]]) -> Check:
    kinds = sorted({str(warning["kind"]) for warning in warnings} - {"memory", GRADIENT_FREE})  # Square has a check of its own
    state = FAIL if set(kinds) & set(GRAVE) else WARN if kinds else PASS
    return Check(name="warnings", state=state, number=float(len(kinds)), text=", ".join(kinds) if kinds else "none")


def _square(after: Mapping[str, float]) -> Check:
    gain = min(acc for name, acc in after.items() if name != GRADIENT_FREE) - after[GRADIENT_FREE]
    gain = max(gain, 0.0)
    state = PASS if gain <= SQUARE_MARGIN else WARN if gain <= MARGIN else FAIL
    return Check(name="square", state=state, number=gain, text=f"Square broke {100 * gain:.2f} points that the other attacks had not")
