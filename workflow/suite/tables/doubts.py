"""Signs at numbers whose trust panel warns or fails, shared by all formats."""

from collections.abc import Iterable

from methods.core.trust import FAIL, WARN
from workflow.suite.results import trust
from workflow.suite.results.measure import Measured

SIGNS = {WARN: "†", FAIL: "‡"}
WORDS = {WARN: "a check of the trust panel warns", FAIL: "a check of the trust panel fails: the number may be too high"}


def sign(item: Measured) -> str:
    """† or ‡; nothing where all is well."""
    return SIGNS.get(trust.of_cell(item).state, "")


def legend(items: Iterable[Measured]) -> list[str]:
    """What the signs that occur mean."""
    states = {trust.of_cell(item).state for item in items}
    return [f"{SIGNS[state]}: {words}" for state, words in WORDS.items() if state in states]
