"""The learning curve of one Run with its phases, or of the seeds of a cell, as a picture."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, PercentFormatter

from workflow.suite.figures import style
from workflow.suite.figures.curves import FEW, LINES
from workflow.suite.figures.style import Picture
from workflow.suite.results.history import Course

NARROW = 0.3  # of the widest panel: a short phase is still to be seen


def draw(runs: Sequence[Sequence[Course]], title: str, foot: str) -> Picture:
    """A panel per phase; every seed is a line, a ring marks the epoch that was kept."""
    titles = list(dict.fromkeys(course.title for courses in runs for course in courses))
    phases = {name: [course for courses in runs for course in courses if course.title == name] for name in titles}
    lengths = [max(len(course.records) for course in courses) for courses in phases.values()]
    figure = style.sheet(6.4, 3.2, title, foot)
    widths = [max(length, NARROW * max(lengths)) for length in lengths]
    panels = figure.subplots(1, len(phases), sharey=True, squeeze=False, width_ratios=widths)[0]
    for axes, (name, courses), length in zip(panels, phases.items(), lengths, strict=True):
        axes.set_title(name if len(phases) > 1 else "")
        axes.set(xlim=(0.5, length + 0.5), xlabel="epoch")
        axes.grid(axis="y", alpha=0.4)
        axes.xaxis.set_major_locator(MaxNLocator(4, integer=True, min_n_ticks=1))
        for course in courses:
            _plot(axes, course, labelled=course is courses[0])
    highest = max(record[metric] for courses in runs for course in courses for record in course.records for metric, *_ in LINES)
    panels[0].set(ylim=(0, min(1.15 * max(highest, 0.1), 1)), ylabel="accuracy")
    panels[0].yaxis.set_major_formatter(PercentFormatter(xmax=1, decimals=0))
    panels[widths.index(max(widths))].legend(loc="best", frameon=False)
    ends = "; ".join(f"seed {courses[-1].run.spec['seed']}: {courses[-1].records[-1]['val_robust']:.1%}" for courses in runs)
    return Picture(
        figure=figure,
        description="Accuracy by epoch: under the training attack, and on the validation images clean and under PGD; a panel per phase, a"
        f" ring at the epoch that was kept. Robust validation accuracy of the last epoch: {ends}.",
    )


def _plot(axes: Axes, course: Course, *, labelled: bool) -> None:
    epochs = [record["epoch"] + 1 for record in course.records]
    for metric, label, colour, dash, marker in LINES:
        values = [record[metric] for record in course.records]
        points = {"marker": marker, "markersize": 4} if len(epochs) <= FEW else {}
        axes.plot(epochs, values, dash, color=colour, linewidth=1, label=label if labelled else None, **points)
        if metric == "val_robust" and course.best is not None:
            axes.plot(course.best, values[course.best - 1], "o", color=colour, fillstyle="none", markersize=9)
