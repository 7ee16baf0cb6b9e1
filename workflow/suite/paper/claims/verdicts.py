"""The verdicts: TRUE or FALSE of the paper's own numbers, which are what they are; holds, fails or undecided of ours, which are samples."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from workflow.suite.paper.claims.condition import Answer, Condition, Leaf
from workflow.suite.results import contrast, paired
from workflow.suite.results.measure import Measured

PAPER = {
    "TRUE": "the paper's numbers satisfy the rule",
    "FALSE": "they do not",
    "FIGURE-ONLY": "the paper shows a picture and prints no number",
    "NOT-IN-TABLES": "no table has the cell",
    "NOT-SHOWN": "the paper shows neither number nor picture",
}
OURS = {
    "holds": "our numbers satisfy the rule, and every comparison that this needs is significant",
    "fails": "they do not, and the comparison that shows it is significant",
    "undecided": "our numbers are too close to tell, over so many test images and seeds",
    "not run": "cells that the rule needs are not measured yet",
    "not testable at this scale": "the scale is a reduced one, or our runs are too short for the rule",
    "no such cell": "no table has the cell",
    "not about results": "the statement is about a formula or about the paper's print",
}
# What evidence can lack, in each one's words.
LACKS_PAPER = {"number": "NOT-IN-TABLES", "picture": "FIGURE-ONLY", "picture or number": "NOT-SHOWN", "results": "NOT-IN-TABLES"}
LACKS_OURS = {"number": "no such cell", "results": "not run", "epochs": "not testable at this scale", "print": "not about results"}
SAME = {("TRUE", "holds"), ("FALSE", "fails")}
DECIDED = {"TRUE", "FALSE", "holds", "fails"}


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """A verdict, and the numbers behind it."""

    verdict: str
    numbers: str


def plainly(condition: Condition) -> str:
    """TRUE or FALSE: numbers as they are."""
    return "TRUE" if condition.answer(lambda leaf: leaf.plain) else "FALSE"


def tested(condition: Condition, measured: Callable[[str], Measured]) -> tuple[str, str]:
    """holds, fails or undecided, and how many comparisons were significant.

    A comparison is answered where its p-value, adjusted over all comparisons of the claim (Holm), is below the level.
    """
    leaves = {leaf.key: leaf for leaf in condition.leaves()}
    p_values = paired.holm([_p_value(leaf, measured) for leaf in leaves.values()])
    answers = {key: _answer(leaf, p) for (key, leaf), p in zip(leaves.items(), p_values, strict=True)}
    verdict = {True: "holds", False: "fails", None: "undecided"}[condition.answer(lambda leaf: answers[leaf.key])]
    clear = sum(answer is not None for answer in answers.values())
    return verdict, f"{clear} of {len(leaves)} comparisons significant" if leaves else ""


def is_ordering(condition: Condition) -> bool:
    """Whether a claim only asks which numbers are higher, and not by how much nor how things look."""
    leaves: Sequence[Leaf] = list(condition.leaves())
    return bool(leaves) and not any(leaf.amount.constant for leaf in leaves)


def counts(judgements: Mapping[str, Judgement], words: Mapping[str, str]) -> str:
    """How many claims have each verdict."""
    seen = [item.verdict for item in judgements.values()]
    return ", ".join(f"{seen.count(word)} {word}" for word in words if word in seen)


def _p_value(leaf: Leaf, measured: Callable[[str], Measured]) -> float:
    if not leaf.amount.parts:
        return 0.0  # cells that cancel, or a constant: nothing is left to chance
    terms = [(factor, measured(address)) for address, factor in leaf.amount.parts.items()]
    return contrast.test(terms, leaf.amount.constant / 100).p


def _answer(leaf: Leaf, p: float) -> Answer:
    return leaf.plain if p < paired.LEVEL else None
