"""Text from files and names, made inert: in Markdown, LaTeX and CSV it is shown as it stands and does nothing.

A table's title, heads, labels and notes, the names of data and the reasons of failures are anyone's text. In a page Jinja escapes them.
In a CSV file a text that a spreadsheet would take for a formula (it starts with =, +, -, @, a tab or a line break, and is no number) gets
an apostrophe before it, which spreadsheets do not show; so does a text that starts with an apostrophe, so that `from_csv` can undo it.
"""

import re
import unicodedata
from collections.abc import Mapping
from typing import Any

MARKDOWN = {"&": "&amp;", "<": "&lt;", ">": "&gt;", **{sign: "\\" + sign for sign in "\\`*[]|"}}
EDGE = re.compile(r"(?<![0-9A-Za-z])_|_(?![0-9A-Za-z])")  # inside a word an underscore marks nothing
LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}"}
LATEX |= {
    "|": r"\textbar{}",
    "`": r"\`{}",
    "±": r"$\pm$",
    "≈": r"$\approx$",
    "·": r"$\cdot$",
    "×": r"$\times$",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "†": r"$\dagger$",
    "‡": r"$\ddagger$",
}
LATEX |= {sign: "\\" + sign for sign in "&%$#_{}"}
LATEX |= {sign: f"{{{sign}}}" for sign in "[]*"}  # at the start of a row they would be arguments of the line break before it
# A letter that is compared with a number, or r or p alone: signs that mean nothing else to TeX.
MATH = re.compile(r"(?<![\w'’.-])([a-z] (?:=|<|>) \d+(?:\.\d+)?(?![\w.]*\w)|[rp](?![\w'’.-]))")
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "'")
NUMBER = re.compile(r"[+-]?\d+(\.\d+)?(e[+-]?\d+)?")


def line(text: str) -> str:
    """One line without control characters."""
    return "".join(sign if unicodedata.category(sign)[0] != "C" else " " for sign in text)


def markdown(text: str) -> str:
    """Text for a paragraph or a cell of a table."""
    return EDGE.sub(r"\_", "".join(MARKDOWN.get(sign, sign) for sign in line(text)))


def latex(text: str) -> str:
    """Text for the body of a document; what the standard fonts lack is named by its code point."""
    signs = (LATEX.get(sign) or (sign if _printable(sign) else f"{{[}}U+{ord(sign):04X}{{]}}") for sign in line(text))
    return "".join(signs).replace("--", "-{}-{}")  # two hyphens of a command are no dash


def latex_math(text: str) -> str:
    """The same, with statements such as r = 0.99, and r and p by themselves, set as mathematics."""
    return "".join(f"${part}$" if i % 2 else latex(part) for i, part in enumerate(MATH.split(line(text))))


def latex_label(text: str) -> str:
    """A name for \\label and \\ref."""
    return re.sub(r"[^0-9A-Za-z:.-]", "-", text)


def csv_entry(value: Any) -> Any:
    """A value of a CSV file."""
    if not isinstance(value, str) or not value.startswith(FORMULA) or NUMBER.fullmatch(value):
        return value
    return "'" + value


def csv_entries(values: Mapping[str, Any]) -> dict[str, Any]:
    """A line of a CSV file."""
    return {key: csv_entry(value) for key, value in values.items()}


def from_csv(value: str) -> str:
    """What `csv_entry` was given."""
    return value[1:] if value.startswith("'") else value


def _printable(sign: str) -> bool:
    return sign.isascii() or (ord(sign) < 0x180 and sign.isalpha())
