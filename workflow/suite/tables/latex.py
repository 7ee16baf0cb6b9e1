"""Tables as LaTeX: numbers aligned at the decimal point (siunitx), notes below. Variants show our numbers alone, or with intervals."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from workflow.suite.planning.plan import Plan
from workflow.suite.planning.tables import Column, Table
from workflow.suite.results import versus
from workflow.suite.results.measure import Measured, measure_table
from workflow.suite.tables import caption, doubts, inert, latex_frame, marks, versus_text
from workflow.suite.tables.caption import Footnotes

TIE = r"$^{\approx}$"
DOUBTS = {"": "", "†": r"$^{\dagger}$", "‡": r"$^{\ddagger}$"}
SUP = r"\textsuperscript"
SIGNS = {"·": r"$\cdot$", "-": "--"}
PORTRAIT = 125  # signs in a line; a wider table lies on its side


@dataclass(frozen=True, kw_only=True)
class Variant:
    """Which numbers a table shows beside ours: the paper's, and the uncertainty of ours."""

    paper: bool = True
    intervals: bool = False

    @property
    def name(self) -> str:
        """What the file of a variant is called; nothing for the one that tables have without asking."""
        return "-".join(["ours"] * (not self.paper) + ["intervals"] * self.intervals)


USUAL = Variant()


def table(plan: Plan, name: str, folder: Path, *, made_by: str, variant: Variant = USUAL) -> str:
    """A whole table in the paper's order: our number, and what the variant shows beside it."""
    shape, measured = plan.table(name), measure_table(plan, name, folder)
    variant = Variant(paper=variant.paper and shape.printed, intervals=variant.intervals)
    best = marks.best(shape, {key: item.value for key, item in measured.items() if item.value is not None})
    notes = Footnotes(plan, versus_text.notes(shape, measured))
    tied, grid, section = versus.ties(shape, measured), [], shape.rows[0].section
    signs = {key: (TIE if key in tied else "") + DOUBTS[doubts.sign(item)] + _sup(notes.of(item)) for key, item in measured.items()}
    for row in shape.rows:
        if row.section != section:
            grid.append(r"\midrule")
            section = row.section
        keys = [(row.id, column.id) for column in shape.columns]
        cells = [entry for key in keys for entry in _cell(measured[key], best.get(key), signs[key], variant)]
        grid.append(" & ".join([*map(inert.latex_math, row.labels), *cells]) + r" \\")
    columns = [_columns([(item, signs[key]) for key, item in measured.items() if key[1] == c.id], variant) for c in shape.columns]
    start = rf"\begin{{tabular}}{{{'l' * len(shape.stub)}{''.join(columns)}}}"
    return latex_frame.frame(
        [start, r"\toprule", *_heads(shape, variant), r"\midrule", *grid, r"\bottomrule", r"\end{tabular}"],
        name=".".join(filter(None, [name, variant.name])),
        caption=shape.caption,
        label=shape.label,
        notes=[*_about(plan, name, folder, measured, variant, bool(tied)), *(f"({i}) {text}." for i, text in enumerate(notes.texts, 1))],
        made_by=made_by,
        sideways=_signs_of_a_line(shape, variant) > PORTRAIT,
        size=r"\footnotesize",
    )


def _about(plan: Plan, name: str, folder: Path, measured: Mapping, variant: Variant, tied: bool) -> list[str]:
    items, beside = list(measured.values()), []
    if variant.intervals:
        spread = any(item.sd is not None for item in items)
        beside.append("In brackets: 95 % interval over test images" + ("; ±: standard deviation over seeds." if spread else "."))
    if variant.paper:
        beside.append("Small: the paper's number.")
    words = [caption.evaluation_line(plan, name, items), f"Data: {'; '.join(caption.data_lines(plan, name, items))}.", *beside]
    words += [f"≈: {caption.TIED}."] if tied else []
    words += [f"{text}." for text in doubts.legend(items)]
    return [caption.comparability(plan), *caption.stale_lines(plan, name, folder), " ".join(words)]


def _cell(item: Measured, mark: str | None, signs: str, variant: Variant) -> list[str]:
    """The entries of a cell: ours, its uncertainty, the paper's."""
    entries = [_number(caption.shown(item, exact=False), mark, signs)]
    if variant.intervals:
        rest = caption.shown(item).partition(" ")[2] if item.value is not None else ""
        entries.append(rf"\scriptsize {inert.latex(rest)}" if rest else "")
    if variant.paper:
        entries.append(_number(caption.reported(item.cell.reported), item.cell.reported.mark))
    return entries


def _number(text: str, mark: str | None, signs: str = "") -> str:
    """An entry of a column of numbers; a text instead of one stands in braces. The line under a number is drawn behind it, so that the
    number stays one that siunitx aligns."""
    if not text[:1].isdigit():
        return f"{{{SIGNS.get(text, text)}{signs}}}" if text or signs else ""
    line = rf"\llap{{\underline{{\phantom{{{text}}}}}}}" if mark == "underline" else ""
    behind = f" {{{line}{signs}}}" if line or signs else ""
    return (r"\bfseries " if mark == "bold" else "") + text + behind


def _columns(items: list[tuple[Measured, str]], variant: Variant) -> str:
    """What the columns under one head are made of."""
    ours = [caption.shown(item, exact=False) for item, _ in items]
    room = max((signs for _, signs in items), key=_width, default="")
    kinds = [rf"S[table-format={_whole(ours)}.2{{{room}}}]"]
    if variant.intervals:
        kinds.append("l")
    if variant.paper:
        kinds.append(rf">{{\scriptsize}}S[table-format={_whole([caption.reported(item.cell.reported) for item, _ in items])}.2]")
    return r"@{\hspace{2pt}}".join(kinds)


def _width(signs: str) -> int:
    """Of what stands behind a number, in raised digits: the sign of a tie is about as wide as two, that of a doubt as one."""
    mathematics, _, notes = signs.partition(SUP)
    return mathematics.count("$") // 2 + mathematics.count(TIE) + len(notes.strip("{}"))


def _whole(texts: list[str]) -> int:
    """Digits before the point."""
    return max((len(text.partition(".")[0]) for text in texts if text[:1].isdigit()), default=2)


def _sup(numbers: list[int]) -> str:
    return rf"{SUP}{{{','.join(map(str, numbers))}}}" if numbers else ""


def _heads(shape: Table, variant: Variant) -> list[str]:
    each = 1 + variant.intervals + variant.paper
    lines = []
    if any(len(column.head) > 1 for column in shape.columns):
        top, rules, start = [""] * len(shape.stub), [], len(shape.stub) + 1
        for group, columns in groupby(shape.columns, key=lambda column: column.head[0]):
            width = each * len(list(columns))
            top.append(_head(group, width))
            rules.append(rf"\cmidrule(lr){{{start}-{start + width - 1}}}")
            start += width
        lines += [" & ".join(top) + r" \\", " ".join(rules)]
    last = [*map(inert.latex_math, shape.stub), *(_head(column.head[-1], each) for column in shape.columns)]
    return [*lines, " & ".join(last) + r" \\"]


def _head(text: str, width: int) -> str:
    return rf"\multicolumn{{{width}}}{{c}}{{{inert.latex_math(text)}}}"


def _signs_of_a_line(shape: Table, variant: Variant) -> int:
    """About how long a line is, in signs."""

    def longest(place: int) -> int:
        return max(len(text) for text in (shape.stub[place], *(row.labels[place] for row in shape.rows)))

    def wide(column: Column) -> int:
        return max(len(column.head[-1]), 8 + 11 * variant.intervals + 5 * variant.paper)

    return sum(longest(place) + 2 for place in range(len(shape.stub))) + sum(map(wide, shape.columns))
