"""The page of findings: for each claim of the paper as stated, what the networks of a scale say, with numbers; and what was learnt from it,
which a person writes (docs/findings_text.md) and this page quotes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tabulate import tabulate

from methods.core import files, paths
from methods.core.errors import UserError
from workflow.suite.paper.claims import ablation, against, clean, effects, evidence, grid, structure
from workflow.suite.paper.claims.claim import Claim
from workflow.suite.paper.claims.evidence import Ours
from workflow.suite.paper.claims.verdicts import Judgement
from workflow.suite.planning.plan import Plan
from workflow.suite.results.measure import measure
from workflow.suite.tables import caption, inert

PAGE, TEXT = Path("docs/findings.md"), Path("docs/findings_text.md")
GROUPS = {
    grid: "Pruning rates and strategies",
    ablation: "Last batch norm, score scale, initialization",
    against: "Against other methods",
    effects: "What one change does",
    clean: "Clean accuracy",
    structure: "Structure of masks",
}
DECIDED = ("holds", "fails", "undecided")
PART = "measured part {verdict}"
WORDS = {
    "holds": "our numbers satisfy the rule, and every comparison that this needs is significant",
    "fails": "they do not, and the comparison that shows it is significant",
    "undecided": "our numbers are too close to tell, over so many test images and seeds",
    "measured part ...": "the rule applied to those of its cells that are measured, as if there were no others; the others can turn it",
    "not testable here": "the rule asks for sizes of differences, pictures or long trainings, of which a reduced scale says nothing",
    "not measured": "too few of its cells are",
}


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A claim, what the paper's numbers say of it, and what ours do."""

    claim: Claim
    paper: str
    verdict: str
    numbers: str


def page(plan: Plan, folder: Path) -> str:
    """The page, from what is finished under `folder`; the same for the same results."""
    if not (plan.scale.comparable or plan.scale.orderings):
        raise UserError(f"scale '{plan.scale.name}': {plan.scale.why}; findings need a scale whose orderings mean something, such as lite")
    groups = {title: list(_findings(plan, folder, group)) for group, title in GROUPS.items()}
    counted = Counter(item.verdict for items in groups.values() for item in items)
    cells = [cell for cell in plan.cells.values() if cell.runs and plan.tables[cell.table].number is not None]
    done = sum(measure(plan, cell, folder).status == "done" for cell in cells)
    parts = [
        "# Findings",
        f"Written by `python -m workflow.suite findings --scale {plan.scale.name}` from the results in this repository; only the text under"
        f" *What was learnt* is by hand (`{TEXT}`).",
        f"**{caption.comparability(plan)}** {_modest(plan)}{done} of {len(cells)} cells of the paper's tables are measured.",
        f"Of {sum(counted.values())} claims of the paper about results, as they are stated: "
        + ", ".join(f"{number} {verdict}" for verdict, number in counted.most_common())
        + f". The paper's own numbers are judged beside them; `{paths.claims(plan.scale.name, 'md')}` has every reading, and the rules.",
        *_learnt(folder),
        *(f"## {title}\n\n{_table(items)}" for title, items in groups.items()),
        "What the verdicts mean: " + "; ".join(f"**{word}**: {text}" for word, text in WORDS.items()) + ".",
    ]
    return "\n\n".join(parts) + "\n"


def write(plan: Plan, folder: Path = Path()) -> Path:
    """Write docs/findings.md; returns its path."""
    files.write(folder / PAGE, page(plan, folder))
    return folder / PAGE


def _findings(plan: Plan, folder: Path, group: object) -> Iterator[Finding]:
    """The claims of a group as they are stated, in their order."""
    paper, ours = evidence.of_paper(plan.tables), evidence.of_results(plan, folder)
    items = [item for item in vars(group).values() if isinstance(item, Claim) and item.reading == "as stated"]
    for item in sorted(items, key=lambda item: int(item.id[1:])):
        judged = _judge(item, ours)
        yield Finding(claim=item, paper=item.judge(paper).verdict, verdict=judged.verdict, numbers=judged.numbers)


def _judge(item: Claim, ours: Ours) -> Judgement:
    """The verdict of our numbers; where cells are missing, that of those which are there."""
    whole = item.judge(ours)
    if whole.verdict in DECIDED:
        return whole
    if whole.verdict != "not run":
        return Judgement(verdict="not testable here", numbers=whole.numbers)
    there = replace(ours, cells=ours.cells.assign(state=ours.cells["state"].replace("pending", "none")), part=True)
    try:
        part = item.judge(there)
    except (ValueError, IndexError, ZeroDivisionError):  # the best of nothing
        part = whole
    if part.verdict not in DECIDED:
        return Judgement(verdict="not measured", numbers=whole.numbers)
    return Judgement(verdict=PART.format(verdict=part.verdict), numbers=f"{part.numbers} ({whole.numbers})")


def _modest(plan: Plan) -> str:
    if plan.scale.comparable:
        return ""
    return "No number here reproduces one of the paper's: a claim that holds is one whose ordering small networks show too. "


def _learnt(folder: Path) -> Iterator[str]:
    path = folder / TEXT
    if path.is_file():
        yield f"## What was learnt\n\n{path.read_text(encoding='utf-8').strip()}"


def _table(items: list[Finding]) -> str:
    lines = [
        [f"{inert.markdown(item.claim.text)} ({item.claim.where}; {item.claim.id})", item.paper]
        + [f"**{item.verdict}**", inert.markdown(item.numbers)]
        for item in items
    ]
    return tabulate(lines, ["claim", "the paper's numbers", "ours", "our numbers"], tablefmt="pipe", disable_numparse=True)
