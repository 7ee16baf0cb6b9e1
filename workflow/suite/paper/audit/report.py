"""reports/paper_audit.md."""

from collections.abc import Callable

from workflow.suite.paper.audit import algorithms, numbers, words
from workflow.suite.paper.claims.evidence import Paper

SECTIONS: dict[str, Callable[[Paper], list[str]]] = {
    "One cell, two numbers": numbers.two_numbers,
    "A dash here, a number there": numbers.dash_and_number,
    "Rows that differ in more than they say": numbers.mixed_scales,
    "Captions against rows": words.captions,
    "Formulas against arithmetic": words.formulas,
    "Algorithms as they stand": algorithms.algorithms,
    "Sentences that tables or arithmetic falsify": words.false_claims,
    "Vague words that do not hold at our threshold": words.vague_claims,
    "Suspicious: equal numbers in one column": numbers.twins,
    "Suspicious: binary above full precision": numbers.binary_above_full,
    "Suspicious: a small network above the full one": numbers.small_above_full,
    "Checked": words.checked,
}
HEAD = (
    "Found by program in the numbers of `workflow/config/tables/` and the printed facts of `workflow/config/paper.yaml`; every line is"
    " generated. Thresholds for vague words are ours and stand in the rules."
)


def findings(paper: Paper) -> dict[str, list[str]]:
    """Section -> what was found."""
    return {title: find(paper) for title, find in SECTIONS.items()}


def markdown(paper: Paper, *, made_by: str) -> str:
    """The whole audit."""
    parts = ["# Where the paper contradicts itself", HEAD]
    for title, contradictions in findings(paper).items():
        parts.append(f"## {title} ({len(contradictions)})" if title != "Checked" else f"## {title}")
        parts.append("\n".join(f"- {line}" for line in contradictions) or "Nothing.")
    return "\n\n".join([*parts, f"*{made_by}*"]) + "\n"
