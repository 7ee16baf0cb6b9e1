"""Tables and rows as Markdown."""

from collections.abc import Iterable
from pathlib import Path

from tabulate import tabulate

from methods.core import paths
from workflow.suite.planning.plan import Plan
from workflow.suite.results import versus
from workflow.suite.results.measure import Measured, measure, measure_table
from workflow.suite.tables import caption, doubts, inert, marks, versus_text
from workflow.suite.tables.caption import Footnotes

STYLE = {"bold": "**{}**", "underline": "<u>{}</u>", None: "{}"}
LEGEND = (
    "A cell reads *ours [95 % interval over test images] / paper*, or *ours ± sd over seeds / paper*. `·` not run yet,"
    " `n.a.` not available, `-` not applicable (ours) or a dash in the paper. Marks follow the paper's rule, on the left for"
    " our numbers (among those finished), on the right as the paper printed them."
)
OWN_LEGEND = (
    "A cell reads *ours [95 % interval over test images]*, or *ours ± sd over seeds*. `·` not run yet, `n.a.` not available, `-` not"
    " applicable. The best finished number of a column is marked."
)
TIED = f"`≈`: {caption.TIED}."


def table(plan: Plan, name: str, folder: Path, *, made_by: str) -> str:
    """A whole table in the paper's order."""
    shape, measured = plan.table(name), measure_table(plan, name, folder)
    ours = marks.best(shape, {key: item.value for key, item in measured.items() if item.value is not None})
    tied = versus.ties(shape, measured)
    notes, lines, section = Footnotes(plan, versus_text.notes(shape, measured)), [], shape.rows[0].section
    for row in shape.rows:
        if row.section != section:
            lines.append(["┄┄"] * (len(shape.stub) + len(shape.columns)))
            section = row.section
        cells = [_cell(measured[row.id, c.id], ours.get((row.id, c.id)), (row.id, c.id) in tied, notes) for c in shape.columns]
        lines.append([*map(inert.markdown, row.labels), *cells])
    heads = [inert.markdown(text) for text in (*shape.stub, *(" ".join(column.head) for column in shape.columns))]
    parts = [
        f"# {inert.markdown(shape.title)}",
        inert.markdown(shape.caption),
        _about(plan, name, list(measured.values()), folder),
        _grid(lines, heads),
        " ".join([LEGEND if shape.printed else OWN_LEGEND, *([TIED] if tied else []), *_doubts(measured.values())]),
    ]
    return "\n\n".join([*parts, *_footnotes(notes), f"*{made_by}*"]) + "\n"


def row(plan: Plan, name: str, row_id: str, folder: Path, *, made_by: str) -> str:
    """One row, a line per cell, with the Runs behind it."""
    chosen, shape, lines = plan.row(name, row_id), plan.table(name), []
    measured = [measure(plan, cell, folder) for cell in plan.cells_of(name, row_id)]
    notes = Footnotes(plan, versus_text.notes(shape, {(row_id, item.cell.column): item for item in measured}))
    for column, item in zip(shape.columns, measured, strict=True):
        runs = "<br>".join(f"`{run}`" for run in item.cell.runs)
        paper = STYLE[item.cell.reported.mark].format(caption.reported(item.cell.reported))
        sups = _sups(notes.of(item))
        lines.append([inert.markdown(" ".join(column.head)), _ours(item) + sups, paper, item.n or "", item.status, runs])
    title = "# " + inert.markdown(f"{shape.title}: {', '.join(chosen.labels)}")
    grid = _grid(lines, ["", "Ours", "Paper", "n", "Status", f"Run (folder of {paths.RESULTS}/runs)"])
    parts = [title, _about(plan, name, measured, folder, row_id), grid, *_doubts(measured)]
    return "\n\n".join([*parts, *_footnotes(notes), f"*{made_by}*"]) + "\n"


def _cell(item: Measured, mark: str | None, tied: bool, notes: Footnotes) -> str:
    ours = _ours(item, mark, tied)
    paper = STYLE[item.cell.reported.mark].format(caption.reported(item.cell.reported))
    both = ours if not paper or ours == paper == "-" else f"{ours} / {paper}"
    return both + _sups(notes.of(item))


def _ours(item: Measured, mark: str | None = None, tied: bool = False) -> str:
    number, _, rest = caption.shown(item).partition(" ")
    return " ".join(filter(None, [STYLE[mark].format(number) + "≈" * tied + doubts.sign(item), rest]))


def _doubts(items: Iterable[Measured]) -> list[str]:
    return [f"{text} (`python -m workflow.suite trust`)." for text in doubts.legend(items)]


def _sups(numbers: list[int]) -> str:
    return f"<sup>{','.join(map(str, numbers))}</sup>" if numbers else ""


def _about(plan: Plan, name: str, measured: list[Measured], folder: Path, row: str | None = None) -> str:
    data = inert.markdown("; ".join(caption.data_lines(plan, name, measured)))
    lines = [f"**{line}**" for line in (caption.comparability(plan), *caption.stale_lines(plan, name, folder, row))]
    lines += [caption.evaluation_line(plan, name, measured), f"Data: {data}."]
    return "\n".join(f"- {line}" for line in lines)


def _footnotes(notes: Footnotes) -> list[str]:
    return ["\n".join(f"{number}. {inert.markdown(text)}" for number, text in enumerate(notes.texts, 1))] if notes.texts else []


def _grid(lines: list[list], heads: list[str]) -> str:
    return tabulate(lines, heads, tablefmt="pipe", disable_numparse=True)
