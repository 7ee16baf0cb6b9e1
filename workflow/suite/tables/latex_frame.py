"""What stands around a LaTeX table: the environment, the caption above, notes below, and nothing wider than the page."""

from collections.abc import Sequence

from workflow.suite.tables import inert

PACKAGES = ("booktabs", "graphicx", "rotating", "siunitx")
HOW = (
    "% In a document: \\usepackage{{{packages}}} and \\input{{{name}}}. Alone:\n"
    "% pdflatex '\\documentclass{{article}}\\usepackage{{{packages}}}\\begin{{document}}\\input{{{name}}}\\end{{document}}'"
)
# Bold digits of a column of numbers; marks stand right behind the last digit.
NUMBERS = r"\sisetup{detect-weight=true,mode=text,table-align-text-post=false}"
MARGIN = "2cm"  # on either side of a table that is wider than the text


def frame(
    tabular: Sequence[str], *, name: str, caption: str, label: str, notes: Sequence[str], made_by: str, sideways: bool = False, size: str
) -> str:
    """A float around the lines of a tabular: wider than the text it is centred on the page, wider than the page it is made smaller."""
    kind, side = ("sidewaystable", r"\paperheight") if sideways else ("table", r"\paperwidth")
    widest = rf"\dimexpr {side} - {MARGIN} - {MARGIN}\relax"
    return "\n".join(
        [
            f"% {inert.line(made_by)}",
            HOW.format(packages=",".join(PACKAGES), name=name),
            rf"\begin{{{kind}}}",
            rf"\centering{size}\setlength{{\tabcolsep}}{{3pt}}{NUMBERS}",
            rf"\caption{{{inert.latex_math(caption)}}}",
            rf"\label{{{inert.latex_label(label)}}}",
            rf"\makebox[\linewidth][c]{{\resizebox{{\ifdim\width>{widest} {widest}\else\width\fi}}{{!}}{{%",
            *tabular,
            "}}",
            *_below(notes),
            rf"\end{{{kind}}}",
            "",
        ]
    )


def _below(notes: Sequence[str]) -> list[str]:
    if not notes:
        return []
    lines = [rf"{inert.latex_math(note)}\par" for note in notes]
    return [r"\par\medskip", r"\begin{minipage}{\linewidth}\scriptsize\raggedright\emergencystretch=3em", *lines, r"\end{minipage}"]
