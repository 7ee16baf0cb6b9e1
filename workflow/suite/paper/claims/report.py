"""The claims as Markdown and CSV: what the paper's numbers say of them, and what ours say."""

import csv
import io
from collections.abc import Mapping

from tabulate import tabulate

from workflow.suite.paper.claims import catalogue, verdicts
from workflow.suite.paper.claims.claim import READINGS
from workflow.suite.paper.claims.verdicts import Judgement
from workflow.suite.planning.plan import Plan
from workflow.suite.tables import caption, inert

FIELDS = ("id", "where", "reading", "claim", "rule", "paper", "ours", "paper_numbers", "our_numbers")
Judgements = Mapping[str, Judgement]


def markdown(plan: Plan, paper: Judgements, ours: Judgements, *, made_by: str) -> str:
    """reports/<scale>/claims.md."""
    both = [(paper[id].verdict, ours[id].verdict) for id in paper if {paper[id].verdict, ours[id].verdict} <= verdicts.DECIDED]
    agree = sum(pair in verdicts.SAME for pair in both)
    about = [
        f"**{caption.comparability(plan)}**",
        f"The paper's own numbers: {verdicts.counts(paper, verdicts.PAPER)}.",
        f"Ours: {verdicts.counts(ours, verdicts.OURS)}. Of {len(both)} claims about results that both decide, {agree} come out alike.",
        "The paper's numbers are compared as they are printed. Ours are tested image by image (exact McNemar for two numbers of one seed,"
        " else Student's t), and Holm's correction covers all comparisons of a claim. With one seed nothing is known of other trainings.",
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
        "On the paper's numbers: " + "; ".join(f"**{name}** {text}" for name, text in verdicts.PAPER.items()) + ".",
        "On ours: " + "; ".join(f"**{name}** {text}" for name, text in verdicts.OURS.items()) + ".",
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
