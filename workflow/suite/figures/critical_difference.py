"""Critical-difference diagrams (Demšar 2006): methods by mean rank over settings, ours above and the paper's below."""

from pathlib import Path

from matplotlib.axes import Axes

from workflow.suite.figures import style
from workflow.suite.figures.style import OURS, PLAIN, Picture
from workflow.suite.planning.plan import Plan
from workflow.suite.results import ranking, settings
from workflow.suite.results.names import OURS as OUR_NAMES
from workflow.suite.results.ranking import Ranking
from workflow.suite.results.settings import Settings

KINDS = {"binary": "binary weights", "fp": "full precision"}
STEP = 0.085  # between two labels, of the height of a panel


def draw(plan: Plan, folder: Path, title: str, foot: str) -> Picture:
    """Four panels: binary weights and full precision, our numbers and the paper's."""
    words = (
        "Mean rank of robust accuracy over settings (data set and architecture), 1 is best, for methods with a number in all of them."
        " A bar joins methods that Nemenyi's test does not tell apart at 5 %; it needs Friedman's test to be significant."
    )
    figure = style.sheet(9.2, 5.2, title, f"{foot}\n{words}")
    panels, said = figure.subplots(2, 2), []
    for place, (precision, kind) in enumerate(KINDS.items()):
        sources = {f"ours, scale {plan.scale.name}": settings.of_results(plan, precision, folder)}
        sources["paper"] = settings.of_paper(plan, precision)
        for row, (whose, measured) in enumerate(sources.items()):
            axes, result = panels[row, place], ranking.rank(measured.values) if measured.values else None
            axes.set_axis_off()
            axes.set_title(f"{kind}, {whose}")
            if result is None:
                axes.text(0.5, 0.5, lacking(measured), transform=axes.transAxes, ha="center", va="center", color=PLAIN)
                said.append(f"{kind}, {whose}: {' '.join(lacking(measured).split())}.")
            else:
                diagram(axes, result)
                said.append(f"{kind}, {whose}: {in_words(result)}")
    return Picture(figure=figure, description="Critical-difference diagrams of mean ranks of robust accuracy. " + " ".join(said))


def lacking(measured: Settings) -> str:
    """Why there is no diagram."""
    have = f"{len(measured.names)} settings in which {len(measured.values)} methods are complete"
    return f"Not drawn: {have};\n{ranking.LEAST} settings and 3 methods are needed"


def in_words(result: Ranking) -> str:
    """A ranking as a sentence."""
    ranks = ", ".join(f"{name} {rank:.1f}" for name, rank in zip(result.names, result.ranks, strict=True))
    return f"{ranks} over {result.settings} settings (Friedman p = {result.p:.2g}, critical difference {result.critical:.2f})."


def diagram(axes: Axes, result: Ranking) -> None:
    """The scale of ranks above, the better half of the names on the left, the others on the right, bars between."""
    count = len(result.names)
    margin = 0.5 * count  # room for names
    axes.set(xlim=(1 - margin, count + margin), ylim=(0.1, 1))
    top = 0.76
    axes.plot([1, count], [top, top], color="black", linewidth=0.8)
    for rank in range(1, count + 1):
        axes.plot([rank, rank], [top, top + 0.02], color="black", linewidth=0.8)
        axes.text(rank, top + 0.025, str(rank), ha="center", va="bottom", fontsize=6)
    length = min(result.critical, count - 1)
    axes.plot([1, 1 + length], [0.91, 0.91], color="black", linewidth=1.2)
    words = f"critical difference {result.critical:.2f} ({result.settings} settings, Friedman p = {result.p:.2g})"
    axes.text(1, 0.93, words, ha="left", va="bottom", fontsize=6, in_layout=False)
    bars = result.groups if result.p < ranking.LEVEL else [(0, count - 1)]
    for number, (first, last) in enumerate(bars):
        height = top - 0.03 - 0.02 * number
        axes.plot([result.ranks[first] - 0.05, result.ranks[last] + 0.05], [height, height], color="black", linewidth=2.2)
    below = top - 0.08 - 0.02 * len(bars)
    left = (count + 1) // 2
    for place, (name, rank) in enumerate(zip(result.names, result.ranks, strict=True)):
        better = place < left
        height = below - STEP * (place if better else count - 1 - place)
        edge = 0.7 if better else count + 0.3
        colour = OURS if name.startswith(OUR_NAMES) else "black"
        axes.plot([rank, rank, edge], [top, height, height], color=colour, linewidth=0.7)
        words = {"ha": "right" if better else "left", "va": "center", "fontsize": 7, "color": colour, "in_layout": False}
        axes.text(edge + (-0.1 if better else 0.1), height, name, **words)
