"""How every figure looks, and how one becomes files."""

import io
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import matplotlib
import seaborn
from matplotlib.figure import Figure

# Red for ours and blue for random pruning are the paper's colours, here in shades that colour-blind readers can tell apart.
OURS, OTHER, EMPTY, PLAIN = "#c0392b", "#1f6fb4", "#f5b041", "#6b7280"
DPI = 200


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A drawn figure and what it shows, in words: alternative text and caption in one."""

    figure: Figure
    description: str


@contextmanager
def look() -> Iterator[None]:
    """The settings under which figures are drawn and saved; those of the process are left as they were."""
    small = {"font.size": 8, "axes.titlesize": 8, "axes.labelsize": 8, "xtick.labelsize": 7, "ytick.labelsize": 7, "legend.fontsize": 7}
    fixed = {"pdf.fonttype": 42, "font.family": "DejaVu Sans", "axes.titlelocation": "left", "figure.facecolor": "white"}
    with seaborn.axes_style("ticks"), matplotlib.rc_context({**small, **fixed}):
        yield


def sheet(width: float, height: float, title: str, foot: str) -> Figure:
    """An empty figure (inches) with its title above and a small line below that says what the numbers are worth."""
    figure = Figure(figsize=(width, height), layout="constrained")
    figure.suptitle(title, x=0.01, ha="left", fontsize=9, fontweight="bold")
    lines = [part for line in foot.splitlines() for part in textwrap.wrap(line, round(22 * width))]  # 6 point: 22 letters to the inch
    figure.supxlabel("\n".join(lines), x=0.01, ha="left", fontsize=6, color=PLAIN)
    return figure


def files_of(picture: Picture, title: str) -> dict[str, bytes]:
    """kind -> content; no dates inside, so equal figures are equal bytes. The PNG carries title and description as text."""
    about = {
        "png": {"Title": title, "Description": picture.description, "Software": None},
        "pdf": {"Title": title, "Subject": picture.description, "CreationDate": None, "Creator": None, "Producer": None},
    }
    contents = {}
    for kind, metadata in about.items():
        stream = io.BytesIO()
        picture.figure.savefig(stream, format=kind, dpi=DPI, metadata=metadata)
        contents[kind] = stream.getvalue()
    return contents
