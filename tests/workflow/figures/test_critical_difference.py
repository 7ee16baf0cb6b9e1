"""The critical-difference diagrams: drawn where there are five settings, and said where there are not."""

from pathlib import Path

import pytest

from tests.workflow import finished
from workflow.suite.figures import critical_difference, needs, style
from workflow.suite.planning import plan
from workflow.suite.results import settings
from workflow.suite.results.ranking import Ranking


@pytest.fixture(scope="module")
def demo():
    return plan.load("demo", data_root=Path("none"))


def drawn(demo, folder):
    with style.look():
        return critical_difference.draw(demo, folder, "A title", "A foot.")


def texts(axes):
    return [text.get_text() for text in axes.texts]


def test_without_results_only_the_paper_has_diagrams(demo, tmp_path):
    picture = drawn(demo, tmp_path)
    assert "binary weights, ours, scale demo: Not drawn: 0 settings in which 0 methods are complete; 5 settings" in picture.description
    assert "binary weights, paper: Ours-LBN, p = 0.1 1.7," in picture.description
    ours, _, paper, _ = picture.figure.axes
    assert len(ours.lines) == 0
    assert "Ours-LBN, p = 0.1" in texts(paper)


def test_finished_comparisons_are_drawn(demo, tmp_path):
    runs = dict.fromkeys(run for table in settings.TABLES for run in demo.final_runs(table))
    for run in runs:
        finished.evaluate(demo, run, tmp_path)
    picture = drawn(demo, tmp_path)
    assert "Not drawn" not in picture.description
    assert set(settings.of_results(demo, "binary", tmp_path).values) <= set(texts(picture.figure.axes[0]))
    assert len(needs.of_ranks(demo)) == len(runs)


@pytest.mark.parametrize(("p", "bars"), [(0.01, [(0.95, 2.05), (1.95, 3.05)]), (0.2, [(0.95, 3.05)])])
def test_bars_join_what_is_not_told_apart(p, bars):
    """Mean ranks 1, 2 and 3 with a critical difference of 1.5: neighbours are joined; all of them, where Friedman's test says nothing."""
    result = Ranking(names=("a", "b", "c"), ranks=(1.0, 2.0, 3.0), settings=5, p=p, critical=1.5)
    with style.look():
        axes = style.sheet(3, 3, "t", "f").subplots()
        critical_difference.diagram(axes, result)
    thick = [tuple(map(float, line.get_xdata())) for line in axes.lines if line.get_linewidth() > 2]
    assert thick == bars
