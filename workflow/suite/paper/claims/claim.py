"""A claim: what is said, by which rule it is tested, and the function that tests it on any evidence."""

from collections.abc import Callable
from dataclasses import dataclass

from workflow.suite.paper.claims.condition import Condition, Fact
from workflow.suite.paper.claims.evidence import Evidence, NoVerdict
from workflow.suite.paper.claims.verdicts import Judgement

READINGS = {
    "as stated": "the natural meaning of the sentence",
    "strict": "its literal, wider meaning (adversarial training counts as a baseline, every p, all rows)",
    "lenient": "the weakest meaning",
    "vague": "a word that needs a threshold, which is ours",
    "cross-check": "a test of the same statement with another table",
}
Finding = tuple[Condition | bool, str]  # what has to hold (or whether it does), and the numbers behind that


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One checkable statement of the paper, in our words."""

    id: str
    where: str
    reading: str
    text: str
    rule: str
    test: Callable[[Evidence], Finding]

    def judge(self, evidence: Evidence) -> Judgement:
        """A verdict, or why there is none."""
        try:
            condition, numbers = self.test(evidence)
        except NoVerdict as reason:
            return Judgement(verdict=reason.verdict, numbers=str(reason))
        except KeyError as key:  # a row or column that its table no longer has
            reason = evidence.lacks("number", f"no cell for {key}")
            return Judgement(verdict=reason.verdict, numbers=str(reason))
        return evidence.decide(condition if isinstance(condition, Condition) else Fact(bool(condition)), numbers)


def claim(id: str, where: str, text: str, rule: str, *, reading: str = "as stated") -> Callable[[Callable[[Evidence], Finding]], Claim]:
    """Decorator: the function under it becomes the claim of that id."""
    if reading not in READINGS:
        raise ValueError(f"{id}: no reading is called '{reading}'")
    return lambda test: Claim(id=id, where=where, reading=reading, text=text, rule=rule, test=test)
