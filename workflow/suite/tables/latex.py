"""Tables as LaTeX: a table environment that needs the booktabs package and nothing else."""

from itertools import groupby
from pathlib import Path

from workflow.suite.planning.plan import Plan
from workflow.suite.planning.tables import Table
from workflow.suite.results import versus
from workflow.suite.results.measure import Measured, measure_table
from workflow.suite.tables import caption, doubts, inert, marks
from workflow.suite.tables.caption import Footnotes

STYLE = {"bold": r"\textbf{{{}}}", "underline": r"\underline{{{}}}", None: "{}"}
TIE = r"$^{\approx}$"
DOUBTS = {"": "", "†": r"$^{\dagger}$", "‡": r"$^{\ddagger}$"}
SIGNS = {"·": r"$\cdot$", "-": "--"}
HOW = (
    "% In a document: \\usepackage{{booktabs}} and \\input{{{name}}}. Alone:\n"
    "% pdflatex '\\documentclass{{article}}\\usepackage{{booktabs}}\\begin{{document}}\\input{{{name}}}\\end{{document}}'\n"
)


def table(plan: Plan, name: str, folder: Path, *, made_by: str) -> str:
    """A whole table in the paper's order: our number, the paper's small beside it."""
    shape, measured = plan.table(name), measure_table(plan, name, folder)
    ours = marks.best(shape, {key: item.value for key, item in measured.items() if item.value is not None})
    tied = versus.ties(shape, measured)
    notes, body, section = Footnotes(plan), [], shape.rows[0].section
    for row in shape.rows:
        if row.section != section:
            body.append(r"\midrule")
            section = row.section
        cells = [_cell(measured[row.id, c.id], ours.get((row.id, c.id)), (row.id, c.id) in tied, notes) for c in shape.columns]
        body.append(" & ".join([*map(inert.latex, row.labels), *cells]) + r" \\")
    items = list(measured.values())
    words = [
        shape.caption,
        caption.comparability(plan),
        *caption.stale_lines(plan, name, folder),
        caption.evaluation_line(plan, name, items),
    ]
    words += [f"Data: {'; '.join(caption.data_lines(plan, name, items))}.", *(["Small: the paper's number."] if shape.printed else [])]
    words += [f"≈: {caption.TIED}."] if tied else []
    words += [f"{text}." for text in doubts.legend(items)]
    words += [f"({number}) {text}." for number, text in enumerate(notes.texts, 1)]
    return "\n".join(
        [
            f"% {inert.line(made_by)}",
            HOW.format(name=name).rstrip(),
            r"\begin{table}",
            r"\centering\footnotesize\setlength{\tabcolsep}{3pt}",
            # Wider than the text of a plain article: centred on the page, where it fits.
            rf"\makebox[\textwidth][c]{{\begin{{tabular}}{{{'l' * len(shape.stub)}{'c' * len(shape.columns)}}}",
            r"\toprule",
            *_heads(shape),
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}}",
            rf"\caption{{{inert.latex(' '.join(words))}}}",
            rf"\label{{{inert.latex_label(shape.label)}}}",
            r"\end{table}",
            "",
        ]
    )


def _cell(item: Measured, mark: str | None, tied: bool, notes: Footnotes) -> str:
    ours, paper = caption.shown(item, exact=False), caption.reported(item.cell.reported)
    numbers = notes.of(item)
    sup = rf"\textsuperscript{{{','.join(map(str, numbers))}}}" if numbers else ""
    if ours == paper == "-":
        return "--" + sup
    ours = STYLE[mark].format(SIGNS.get(ours, ours)) + (TIE if tied else "") + DOUBTS[doubts.sign(item)]
    if not paper:
        return ours + sup
    paper = STYLE[item.cell.reported.mark].format(SIGNS.get(paper, paper))
    return rf"{ours} {{\scriptsize {paper}}}{sup}"


def _heads(shape: Table) -> list[str]:
    stub, lines = len(shape.stub), []
    if any(len(column.head) > 1 for column in shape.columns):
        top, rules, start = [""] * stub, [], stub + 1
        for group, columns in groupby(shape.columns, key=lambda column: column.head[0]):
            width = len(list(columns))
            top.append(rf"\multicolumn{{{width}}}{{c}}{{{inert.latex(group)}}}")
            rules.append(rf"\cmidrule(lr){{{start}-{start + width - 1}}}")
            start += width
        lines += [" & ".join(top) + r" \\", " ".join(rules)]
    last = [*map(inert.latex, shape.stub), *(inert.latex(column.head[-1]) for column in shape.columns)]
    return [*lines, " & ".join(last) + r" \\"]
