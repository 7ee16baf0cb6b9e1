"""Figures of many trainings, and of where a mask comes from."""

import numpy as np
import pytest

from methods.core import paths, sealed
from methods.core.errors import UserError
from tests.workflow import finished
from workflow.suite.figures import mask_origin, needs, style, table_curves
from workflow.suite.planning import plan
from workflow.suite.planning.config import ROOT
from workflow.suite.results import archive, history

# Two layers of 2 x 2 weights of one pixel. The first keeps two weights of one output in the end, one of each before.
COUNTS = {
    "start": {"a": {"inputs": [1, 1], "outputs": [1, 1]}, "b": {"inputs": [1, 0], "outputs": [1, 0]}},
    "first": {"a": {"inputs": [1, 1], "outputs": [2, 0]}, "b": {"inputs": [0, 1], "outputs": [1, 0]}},
    "last": {"a": {"inputs": [1, 1], "outputs": [2, 0]}, "b": {"inputs": [1, 0], "outputs": [1, 0]}},
}
# In the end the second layer is not pruned at all, and one of the two pruned weights of empty channels has a gradient.
GRADIENTS = {
    "start": {name: {"pruned": 2, "without": 0, "empty": 0, "empty_without": 0} for name in "ab"},
    "first": {name: {"pruned": 2, "without": 1, "empty": 0, "empty_without": 0} for name in "ab"},
    "last": {
        "a": {"pruned": 2, "without": 2, "empty": 2, "empty_without": 1},
        "b": {"pruned": 0, "without": 0, "empty": 0, "empty_without": 0},
    },
}


@pytest.fixture(scope="module")
def demo():
    return plan.load("demo", data_root=ROOT / "none")


@pytest.fixture
def origin(tmp_path):
    value = {"moments": COUNTS, "kept_in_both": {"start": {"a": 1, "b": 1}, "first": {"a": 2, "b": 0}}, "gradients": GRADIENTS}
    sealed.write(tmp_path / "x.json", value)
    return mask_origin.read(tmp_path / "x.json", {"a": 4, "b": 4})


def test_layers_are_in_the_networks_order(origin, tmp_path):
    """Whatever their order in the file, which is that of names."""
    assert mask_origin.read(tmp_path / "x.json", {"b": 4, "a": 4}).layers == ("b", "a")
    assert origin.layers == ("a", "b")


def test_empty_channels_by_layer(origin):
    assert origin.empty("outputs", "start").tolist() == [0, 0.5]
    assert origin.empty("outputs", "last").tolist() == [0.5, 0.5]
    assert origin.whole("outputs", "last") == 0.5
    assert origin.whole("inputs", "last") == 0.25


def test_random_pruning_by_hand(origin):
    """Two of four weights in channels of two: one of six draws leaves a given channel empty; one of four: half of them."""
    assert origin.expected("outputs") == pytest.approx([1 / 6, 1 / 2])


def test_channels_that_were_empty_already(origin):
    assert origin.already("outputs", "first") == 1.0
    assert origin.already("outputs", "start") == 0.5
    assert origin.already("inputs", "first") == 0.0


def test_layers_that_keep_almost_everything_are_never_left_empty(tmp_path):
    dense = {"a": {"inputs": [2, 1], "outputs": [2, 1]}}
    value = {"moments": dict.fromkeys(mask_origin.MOMENTS, dense), "kept_in_both": {"start": {"a": 3}, "first": {"a": 3}}}
    value["gradients"] = dict.fromkeys(mask_origin.MOMENTS, {"a": dict.fromkeys(mask_origin.COUNTS, 0)})
    sealed.write(tmp_path / "x.json", value)
    whole = mask_origin.read(tmp_path / "x.json", {"a": 4})
    assert whole.expected("inputs").tolist() == [0.0]
    assert np.isnan(whole.already("inputs", "first"))


def test_pruned_weights_without_a_gradient(origin):
    assert origin.without_gradient("first").tolist() == [0.5, 0.5]
    assert origin.without_gradient("last") == pytest.approx([1.0, np.nan], nan_ok=True)
    assert origin.of_all("last", "without", "pruned") == 1.0
    assert origin.of_all("last", "empty_without", "empty") == 0.5
    assert np.isnan(origin.of_all("start", "empty_without", "empty"))


def test_a_repetition_by_an_earlier_version_is_refused(tmp_path):
    sealed.write(tmp_path / "x.json", {"moments": COUNTS, "kept_in_both": {"start": {"a": 1, "b": 1}, "first": {"a": 2, "b": 0}}})
    with pytest.raises(UserError, match="x.json: an earlier version made it, which did not look at gradients; delete it"):
        mask_origin.read(tmp_path / "x.json", {"a": 4, "b": 4})


def test_a_repetition_that_is_missing_is_named(demo, tmp_path):
    with pytest.raises(UserError, match=r"first_epoch.json: is not there; `python -m methods.first_epoch --run results/runs/"):
        mask_origin.draw(demo, tmp_path, "", "")


def test_the_repetition_is_told_in_words(demo, tmp_path):
    run = needs.subject(demo)
    finished.train(demo, run, tmp_path)
    finished.repeat_first_epoch(demo, run, tmp_path)
    with style.look():
        picture = mask_origin.draw(demo, tmp_path, "", "")
    assert "100% after the first epoch were kept" in picture.description
    assert len(picture.figure.axes) == 4


def test_a_panel_per_row_and_a_line_per_training(demo, tmp_path):
    table = "bn_ablation"
    cells = demo.cells_of(table)
    for cell in cells[:3]:
        finished.train(demo, cell.runs[0], tmp_path)
    with style.look():
        picture = table_curves.draw(demo, tmp_path, "", "", table)
    panels = picture.figure.axes
    lines = [line for axes in panels for line in axes.lines if len(line.get_ydata()) == 3]
    expected = [[record["val_robust"] for record in history.read(cell.runs[0], tmp_path)] for cell in cells[:3]]
    assert [list(line.get_ydata()) for line in lines] == expected
    words = [[text.get_text() for text in axes.texts] for axes in panels]
    assert words == [[], ["1 of 2"], ["not trained yet"], ["not trained yet"], []]
    assert "3 of 8 trainings are finished" in picture.description


def test_the_legend_names_the_columns_that_have_lines(demo, tmp_path):
    table = "bn_ablation"
    cell = demo.cells_of(table)[0]
    column = demo.table(table).columns[0]
    assert cell.column == column.id
    for trained, expected in ((False, [" ".join(one.head) for one in demo.table(table).columns]), (True, [" ".join(column.head)])):
        if trained:
            finished.train(demo, cell.runs[0], tmp_path)
        with style.look():
            picture = table_curves.draw(demo, tmp_path, "", "", table)
        assert [text.get_text() for text in picture.figure.legends[0].get_texts()] == expected


def test_first_epochs_are_kept_and_exported(demo, tmp_path):
    run = needs.subject(demo)
    finished.train(demo, run, tmp_path)
    finished.repeat_first_epoch(demo, run, tmp_path)
    assert paths.first_epoch(run) in archive.files_of(demo, run, tmp_path)
