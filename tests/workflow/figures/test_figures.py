"""Figures: what they draw, and what they wait for."""

import io
import shutil

import numpy as np
import pytest
from PIL import Image

from methods.core import paths, sealed
from methods.core.errors import UserError
from tests.workflow import finished
from workflow.suite.__main__ import main
from workflow.suite.figures import catalogue, curves, mask_plots, needs, ratio_map, size_plot, style
from workflow.suite.jobs import damage
from workflow.suite.planning import plan
from workflow.suite.planning.config import ROOT
from workflow.suite.results import history, masks, size

MASK_FIGURES = ("mask_dist", "kernel_histogram", "mask_alignment", "mask_full")


def drawn(function, demo, folder):
    with style.look():
        return function(demo, folder, "A title", "A foot.")


def test_every_figure_is_drawn_and_describes_itself(demo, folder):
    for name in catalogue.available(demo, folder):
        png, pdf = catalogue.write(demo, name, folder)
        with Image.open(png) as image:
            assert image.text["Title"] == catalogue.FIGURES[name].title
            assert len(image.text["Description"]) > 80
            assert len(np.unique(np.asarray(image.convert("L")))) > 10, "something is drawn"
        assert pdf.read_bytes().startswith(b"%PDF")
        assert pdf.stat().st_size > 5000


def test_equal_results_make_equal_bytes(demo, folder):
    first, second = (style.files_of(drawn(mask_plots.kernels, demo, folder), "t") for _ in range(2))
    assert first == second
    assert set(first) == set(paths.PICTURES)
    assert Image.open(io.BytesIO(first["png"])).size == (round(5.2 * style.DPI), round(3.2 * style.DPI))


def test_distribution_shows_sorted_counts(demo, folder):
    pair = masks.read_pair(folder / paths.model(needs.subject(demo)))
    picture = drawn(mask_plots.distribution, demo, folder)
    expected = [masks.per_input(pair.first), masks.per_output(pair.first), masks.per_input(pair.second), masks.per_output(pair.second)]
    for axes, counts in zip(picture.figure.axes, expected, strict=True):
        random, ours = (line.get_ydata() for line in axes.lines)
        assert ours.tolist() == sorted(counts, reverse=True)
        assert random.sum() == pytest.approx(counts.sum())
        assert axes.texts[0].get_text() == f"empty: {(counts == 0).sum()} of 32"
    assert "first square block of stage 3 (blocks.8, 32 to 32 channels)" in picture.description


def test_kernel_histogram_counts_kernels(demo, folder):
    pair = masks.read_pair(folder / paths.model(needs.subject(demo)))
    axes = drawn(mask_plots.kernels, demo, folder).figure.axes[0]
    ours, random = ([bar.get_height() for bar in group] for group in axes.containers)
    assert ours == masks.per_kernel(pair.second).tolist()
    assert sum(ours) == 32 * 32
    assert sum(random) == pytest.approx(32 * 32, abs=0.2)
    assert axes.get_yscale() == "log"


def test_alignment_puts_shared_channels_in_the_same_rows(demo, folder):
    pair = masks.read_pair(folder / paths.model(needs.subject(demo)))
    left, out, into, right = (axes.images[0].get_array() for axes in drawn(mask_plots.alignment, demo, folder).figure.axes)
    assert left.reshape(32, -1).any(1).tolist() == out.ravel().tolist() == (masks.per_output(pair.first) > 0).tolist()
    assert right.reshape(32, -1).any(1).tolist() == into.ravel().tolist() == (masks.per_input(pair.second) > 0).tolist()


def test_full_mask_colours_unread_inputs(demo, folder):
    mask = masks.read_pair(folder / paths.model(needs.subject(demo))).second
    bar, picture = (axes.images[0].get_array() for axes in drawn(mask_plots.full, demo, folder).figure.axes)
    unread = masks.per_input(mask) == 0
    assert unread.any()
    assert not unread.all()
    assert bar.ravel().tolist() == (~unread).tolist()
    assert (picture == 1).sum() == mask.sum()
    assert (picture == 2).sum() == unread.sum() * 3 * 96


def test_curves_show_the_history(demo, folder):
    figure = drawn(curves.draw, demo, folder).figure
    for axes, (run,) in zip(figure.axes, needs.curve_runs(demo).values(), strict=True):
        records = history.read(run, folder)
        assert [list(line.get_ydata()) for line in axes.lines] == [[record[key] for record in records] for key, *_ in curves.LINES]
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles[0] == "(a) r = 0.99, p = 0.1"
    assert titles[7] == "(h) r = 0.5, p = 1.0"


def test_a_damaged_history_is_named(demo, folder, tmp_path):
    run = needs.subject(demo)
    path = tmp_path / paths.history(run)
    path.parent.mkdir(parents=True)
    for content, message in (('{"epoch": 0', "is not the history"), ('{"epoch": 0}', "misses val_clean, val_robust"), ("", "every epoch")):
        path.write_text(content)
        sealed.write(tmp_path / paths.train_manifest(run), {"history_sha256": sealed.file_hash(path)})
        with pytest.raises(UserError, match=f"history.jsonl: .*{message}.*train this Run again"):
            history.read(run, tmp_path)
    path.write_text('{"epoch": 1}')
    with pytest.raises(UserError, match="history.jsonl: is damaged, or not the file that train.json describes"):
        history.read(run, tmp_path)


def test_a_damaged_model_is_named_and_made_again(demo, folder, tmp_path):
    run = needs.subject(demo)
    shutil.copytree(folder / paths.run_folder(run), tmp_path / paths.run_folder(run))
    content = bytearray((tmp_path / paths.model(run)).read_bytes())
    content[-1] ^= 1
    (tmp_path / paths.model(run)).write_bytes(content)
    with pytest.raises(UserError, match="model.safetensors: is damaged"):
        mask_plots.full(demo, tmp_path, "", "")
    assert not (tmp_path / paths.train_manifest(run)).exists(), "so that it is trained again"


def test_a_model_that_was_not_copied_is_unpacked(demo, folder, tmp_path):
    run = needs.subject(demo)
    shutil.copytree(folder / paths.run_folder(run), tmp_path / paths.run_folder(run))
    (tmp_path / paths.model(run)).unlink()
    assert damage.checked_model(run, tmp_path).read_bytes() == (folder / paths.model(run)).read_bytes()
    (tmp_path / paths.model(run)).unlink()
    (tmp_path / paths.compact(run)).write_bytes(b"x")
    with pytest.raises(
        UserError, match="model.safetensors: cannot be made from network.rbs .*is no compact network.*; get that file again"
    ):
        damage.checked_model(run, tmp_path)
    assert (tmp_path / paths.train_manifest(run)).exists(), "nothing is trained again for want of a copy"


def test_the_map_shows_both_numbers_of_each_cell(demo, folder):
    ours, paper = drawn(ratio_map.draw, demo, folder).figure.axes[:2]
    assert len(ours.patches) == 49 - 8, "the others are hatched"
    assert len(paper.patches) == 0
    assert len(ours.texts) == 8, "eight cells are finished"
    assert [text.get_text() for text in paper.texts][:3] == ["2.2", "6.9", "23.0"]
    assert len(paper.texts) == 49
    bold = [text.get_text() for text in paper.texts if text.get_fontweight() == "bold"]
    assert bold == ["35.0", "44.9", "41.0", "43.6", "43.9", "42.9", "43.2"]


def test_sizes_are_shown_once_per_network(demo, folder):
    points = size_plot.points_of(demo, folder)
    cells = [cell for cell in demo.cells_of("comparison_rn18_rn50") if cell.runs]
    known = {run for name in needs.COMPARISONS for run in demo.final_runs(name) if (folder / paths.train_manifest(run)).is_file()}
    assert len(points) == len(known) > len({cell.runs for cell in cells}), "a network that two tables show counts once"
    ours = next(cell for cell in cells if cell.row == "ours" and cell.column == "rn18-binary")
    point = next(point for point in points if point.kilobytes == size.of_run(ours.runs[0], folder).kilobytes and point.method == "Ours")
    assert point.binary
    assert point.dataset == "cifar10"
    assert 0 < point.interval[0] < point.accuracy < point.interval[1] < 1
    assert point.measured
    dense = max(points, key=lambda point: point.kilobytes)
    assert dense.method in ("AT", "TRADES")
    assert not dense.binary
    assert not dense.measured
    assert dense.kilobytes > 10 * point.kilobytes


def test_a_figure_says_which_sizes_were_measured(demo, folder):
    foot = " ".join(text.get_text() for text in drawn(size_plot.draw, demo, folder).figure.texts).replace("\n", " ")
    assert "Size: bytes of the compact file; counted for AT (not pruned, so not packed): positions and values of the kept weights" in foot


def test_sizes_have_a_panel_for_each_data_set_that_is_measured(demo, folder):
    picture = drawn(size_plot.draw, demo, folder)
    assert [axes.get_title(loc="left") for axes in picture.figure.axes] == ["CIFAR-10"]
    foot = " ".join(text.get_text() for text in picture.figure.texts).replace("\n", " ")
    assert "Not measured yet: CIFAR-100, ImageNet-100." in foot


def test_no_image_or_every_image_withstood(demo, folder, tmp_path):
    """Intervals at the ends of the scale are drawn as well."""
    runs = demo.final_runs("comparison_rn18_rn50")[:2]
    for run, hits in zip(runs, (0, 64), strict=True):
        finished.train(demo, run, tmp_path)
        finished.evaluate(demo, run, tmp_path, hits=hits)
    picture = drawn(size_plot.draw, demo, tmp_path)
    bars = [segment[:, 1] for bar in picture.figure.axes[0].collections for segment in bar.get_segments()]
    assert sorted(bar.round(4).tolist() for bar in bars) == [[0.0, 0.0566], [0.9434, 1.0]]
    assert "best AT with 100.0%" in picture.description


def test_nothing_finished_is_said_and_drawn(demo, tmp_path):
    for function, words in ((curves.draw, "nothing is trained yet"), (ratio_map.draw, "0 of 49 cells"), (size_plot.draw, "of 0 networks")):
        assert words in drawn(function, demo, tmp_path).description


def test_the_command_draws_what_it_can(demo, folder, tmp_path, capsys):
    run = needs.subject(demo)
    assert main(["figures", "--directory", str(folder), "--figure", "kernel_histogram"]) == 0
    assert capsys.readouterr().out.split() == [str(folder / paths.figure("demo", "kernel_histogram", kind)) for kind in paths.PICTURES]
    assert main(["figures", "--directory", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    missing = [line.split(":")[0] for line in lines if "not drawn" in line]
    assert missing == [*MASK_FIGURES, "mask_origin", "security_curves"]
    assert len(lines) == len(missing) + 2 * (len(catalogue.FIGURES) - len(missing))
    assert f"{paths.train_manifest(run)}: is not there; this figure shows a Run that is not trained yet" in lines[0]
    assert main(["figures", "--figure", "nothing"]) == 2
    assert capsys.readouterr().err.startswith("error: no figure is called 'nothing'; allowed: mask_dist")


# Planning


def test_each_figure_waits_for_its_own_runs(demo):
    subject = paths.train_manifest(needs.subject(demo))
    waits = {name: figure.inputs(demo) for name, figure in catalogue.FIGURES.items()}
    assert all(waits[name] == [subject] for name in MASK_FIGURES)
    assert waits["mask_origin"] == [subject, paths.first_epoch(needs.subject(demo))]
    assert len(waits["curves_sp_ratio"]) == 49
    assert len(waits["learning_curves"]) == 8
    assert all(path.endswith("train.json") for path in waits["learning_curves"])
    assert len(waits["ratio_map"]) == 49
    assert all("/eval/" in path for path in waits["ratio_map"])
    assert {run.split("/")[2] for run in waits["size_accuracy"]} == {run for name in needs.COMPARISONS for run in demo.final_runs(name)}
    assert set(catalogue.FIGURES) - set(catalogue.available(demo)) == {"security_curves"}, "no curve is measured here"


def test_a_plan_without_the_runs_has_no_figures(repository, tmp_path):  # noqa: F811
    other = plan.load("demo", data_root=tmp_path, root=repository)
    assert catalogue.available(other) == []
    with pytest.raises(UserError, match="figure 'mask_dist' cannot be drawn at scale 'demo': none of the Runs"):
        catalogue.write(other, "mask_dist", tmp_path)
    with pytest.raises(UserError, match="no figure is called 'mask'; allowed: mask_dist, kernel_histogram"):
        catalogue.find("mask")


def test_planning_loads_no_plotting_library():
    import subprocess
    import sys

    code = "import sys; from workflow.suite.figures import catalogue; print([m for m in ('matplotlib', 'numpy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_code_that_draws_is_named_for_the_rule():
    for figure in catalogue.FIGURES.values():
        for module in figure.modules:
            assert (ROOT / "workflow" / "suite" / f"{module.replace('.', '/')}.py").is_file()
