"""The claims as Markdown and CSV: what the paper's numbers say of them, and what ours say."""

import csv
import io
from collections import Counter
from collections.abc import Mapping

from tabulate import tabulate

from workflow.suite.paper.claims import catalogue
from workflow.suite.paper.claims.claim import READINGS, Judgement
from workflow.suite.paper.claims.evidence import VERDICTS
from workflow.suite.planning.plan import Plan
from workflow.suite.tables import caption, inert

FIELDS = ("id", "where", "reading", "claim", "rule", "paper", "ours", "paper_numbers", "our_numbers")
Judgements = Mapping[str, Judgement]


def markdown(plan: Plan, paper: Judgements, ours: Judgements, *, made_by: str) -> str:
    """reports/<scale>/claims.md."""
    fixed = catalogue.fixed()
    both = [id for id in paper if id not in fixed and {paper[id].verdict, ours[id].verdict} <= {"TRUE", "FALSE"}]
    agree = sum(paper[id].verdict == ours[id].verdict for id in both)
    about = [
        f"**{caption.comparability(plan)}**",
        f"The paper's own numbers: {counted(paper)}.",
        f"Ours: {counted(ours)}. Of {len(both)} claims about results that both decide, {agree} come out alike; {len(fixed)}"
        " claims about formulas do not depend on results.",
        "A verdict compares numbers as they are and does not"
        " weigh their intervals: where few images or one seed stand behind ours, a small lead means little.",
    ]
    lines = [
        [
            item.id,
            item.where,
            item.reading,
            inert.markdown(item.text),
            inert.markdown(item.rule),
            f"**{paper[item.id].verdict}**",
            f"**{ours[item.id].verdict}**",
        ]
        + [inert.markdown(paper[item.id].numbers), inert.markdown(ours[item.id].numbers)]
        for item in catalogue.claims()
    ]
    heads = ["", "where", "reading", "claim", "rule", "paper", "ours", "the paper's numbers", "our numbers"]
    parts = [
        f"# The paper's claims, tested; scale {plan.scale.name}",
        "\n".join(f"- {line}" for line in about),
        tabulate(lines, heads, tablefmt="pipe", disable_numparse=True),
        "Verdicts: " + "; ".join(f"**{name}** {text}" for name, text in VERDICTS.items()) + ".",
        "Readings: " + "; ".join(f"*{name}* is {text}" for name, text in READINGS.items()) + ".",
    ]
    return "\n\n".join([*parts, f"*{made_by}*"]) + "\n"


def sheet(paper: Judgements, ours: Judgements) -> str:
    """One line per claim, for programs."""
    text = io.StringIO()
    writer = csv.DictWriter(text, FIELDS, lineterminator="\n")
    writer.writeheader()
    for item in catalogue.claims():
        entry = {"id": item.id, "where": item.where, "reading": item.reading, "claim": item.text, "rule": item.rule}
        entry |= {"paper": paper[item.id].verdict, "paper_numbers": paper[item.id].numbers}
        writer.writerow(inert.csv_entries(entry | {"ours": ours[item.id].verdict, "our_numbers": ours[item.id].numbers}))
    return text.getvalue()


def counted(found: Judgements) -> str:
    """How many claims have each verdict."""
    seen = Counter(item.verdict for item in found.values())
    return ", ".join(f"{seen[verdict]} {verdict}" for verdict in VERDICTS if seen[verdict])
