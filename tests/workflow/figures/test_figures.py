"""Figures: what they count, what they draw, and what they wait for."""

import io
import shutil

import numpy as np
import pytest
from PIL import Image
from safetensors.numpy import load_file

from methods.core import paths, sealed
from methods.core.errors import UserError
from methods.networks import compact
from methods.networks.model_file import load_model
from tests.workflow import finished
from workflow.suite.__main__ import main
from workflow.suite.figures import catalogue, curves, mask_plots, needs, ratio_map, size_plot, style
from workflow.suite.jobs import damage
from workflow.suite.planning import plan
from workflow.suite.planning.config import ROOT
from workflow.suite.results import history, masks, size
from workflow.suite.results.size import Layer

MASK_FIGURES = ("mask_dist", "kernel_histogram", "mask_alignment", "mask_full")


@pytest.fixture(scope="module")
def demo():
    return plan.load("demo", data_root=ROOT / "none")


@pytest.fixture(scope="module")
def folder(demo, tmp_path_factory):
    """Finished: the network of the mask figures, the eight of the curves, and the small comparison of RN18 and RN50."""
    runs = [needs.subject(demo), *(run for group in needs.curve_runs(demo).values() for run in group)]
    folder = finished.finish(demo, [*dict.fromkeys([*runs, *demo.final_runs("comparison_rn18_rn50")])], tmp_path_factory.mktemp("done"))
    finished.repeat_first_epoch(demo, needs.subject(demo), folder)
    return folder


def drawn(function, demo, folder):
    with style.look():
        return function(demo, folder, "A title", "A foot.")


def small_mask():
    """Two outputs, three inputs: the kernel (0, 0) is full, (1, 2) keeps one weight."""
    mask = np.zeros((2, 3, 3, 3), dtype=bool)
    mask[0, 0] = True
    mask[1, 2, 1, 1] = True
    return mask


# Counting


def test_counts_of_a_mask():
    mask = small_mask()
    assert masks.per_input(mask).tolist() == [9, 0, 1]
    assert masks.per_output(mask).tolist() == [9, 1]
    assert masks.per_kernel(mask).tolist() == [4, 1, 0, 0, 0, 0, 0, 0, 0, 1]
    assert masks.falling(masks.per_input(mask)).tolist() == [9, 1, 0]


def test_a_mask_as_a_picture():
    picture = mask_plots.tall(small_mask())
    assert picture.shape == (6, 9)
    assert picture[:3, :3].all() and picture[4, 7] and picture.sum() == 10


def test_overlap_of_empty_channels():
    first, second = np.ones((4, 4, 3, 3), dtype=bool), np.ones((4, 4, 3, 3), dtype=bool)
    first[[0, 1]] = False
    second[:, [1, 2]] = False
    found = masks.overlap(masks.Pair(block=0, first=first, second=second))
    assert (found.empty_outputs, found.empty_inputs, found.both) == (2, 2, 1)
    assert found.jaccard == pytest.approx(1 / 3) and found.by_chance == pytest.approx(1 / 3)
    full = masks.Pair(block=0, first=np.ones_like(first), second=np.ones_like(first))
    assert masks.overlap(full).jaccard == masks.overlap(full).by_chance == 0


def test_random_pruning_is_sorted_before_it_is_averaged():
    """The expected curve of a 256-channel layer at r = 0.99 is known; averaging first would give 23.04 at every rank."""
    found = masks.random_reference((256, 256, 3, 3), 5898, simulations=100)
    for mean, sd in (found.inputs, found.outputs):
        assert mean.sum() == pytest.approx(5898)
        assert [mean[0], mean[128], mean[255]] == pytest.approx([37.56, 22.94, 10.73], abs=0.8)
        assert (np.diff(mean) <= 0).all() and sd[0] == pytest.approx(2.16, abs=0.6)


# Which layer


def shapes(arch, width=1.0):
    net = finished.build(arch, classes=10, width=width)
    return {name: tuple(tensor.shape) for name, tensor in net.state_dict().items()}


@pytest.mark.parametrize(("arch", "width", "block"), [("rn34", 1.0, 8), ("rn34", 0.125, 8), ("rn18", 1.0, 5)])
def test_the_block_that_is_shown(arch, width, block):
    assert masks.square_block(shapes(arch, width), "a file") == block


def test_a_network_without_such_a_block_is_refused():
    with pytest.raises(UserError, match="a file: stage 3 has no block with two square 3x3 convolutions"):
        masks.square_block(shapes("rn50", 0.125), "a file")


def test_a_damaged_model_is_named(demo, folder, tmp_path):
    whole = (folder / paths.model(needs.subject(demo))).read_bytes()
    for content in (whole[:1000], b"", b"\xff" * 100):
        (tmp_path / "model.safetensors").write_bytes(content)
        with pytest.raises(UserError, match="model.safetensors: cannot be read as a model file .*train this Run again"):
            masks.read_pair(tmp_path / "model.safetensors")
    with pytest.raises(UserError, match="gone.safetensors: cannot be read"):
        masks.read_pair(tmp_path / "gone.safetensors")


# Size


@pytest.mark.parametrize(
    ("layer", "bits"),
    [
        (Layer(entries=100, kept=100, values=100), 100 * 32),  # dense floats
        (Layer(entries=100, kept=100, values=2), 100 + 64),  # dense signs: a bit each, and the two values
        (Layer(entries=100, kept=10, values=2), 10 * 7 + 10 + 64),  # sparse signs: positions of seven bits
        (Layer(entries=100, kept=50, values=2), 100 + 50 + 64),  # a bitmap is cheaper than positions
        (Layer(entries=100, kept=10, values=10), 70 + 320),  # sparse floats: a codebook of ten would not pay
        (Layer(entries=100, kept=1, values=1), 7 + 32),
        (Layer(entries=100, kept=0, values=0), 0),
        (Layer(entries=100, kept=50, values=2, codebooks=6), 100 + 50 + 6 * 32),
    ],
)
def test_bits_of_a_layer(layer, bits):
    assert layer.bits == bits


def test_a_size_is_that_of_the_compact_file(demo, folder, tmp_path):
    run = needs.subject(demo)
    net = load_model(folder / paths.model(run))
    packed = compact.pack(net, demo.runs[run].spec, tmp_path / "net.rbs")
    assert size.of_run(run, folder) == size.Size(kilobytes=packed / 1000, measured=True)


def test_a_counted_size_agrees_with_the_tensors(demo, folder, tmp_path):
    """Of a network that was not packed: from the manifest's counts, against a count over the weights themselves."""
    run = needs.subject(demo)
    shutil.copytree(folder / paths.run_folder(run), tmp_path / paths.run_folder(run))
    sealed.write(tmp_path / paths.train_manifest(run), {**sealed.read(folder / paths.train_manifest(run)), "bytes": None})
    tensors = load_file(folder / paths.model(run))
    weights = [tensor for tensor in tensors.values() if tensor.ndim == 4 and tensor.shape[2:] != (1, 1)]
    weights += [tensors[name] for name in tensors if name.endswith("projection.weight") or name == "head.weight"]
    bits = 64 * sum(tensor.size for name, tensor in tensors.items() if name.endswith("running_var"))
    for weight in weights:
        kept = weight[weight != 0]
        positions = min(weight.size, kept.size * int(np.ceil(np.log2(weight.size))))
        bits += positions + min(32 * kept.size, kept.size + 32 * 2)
    assert size.of_run(run, tmp_path) == size.Size(kilobytes=pytest.approx(bits / 8000), measured=False)


def test_order_of_layers_is_that_of_the_report():
    net = finished.build("rn34", classes=10, width=0.125)
    assert size.convolutions(shapes("rn34", 0.125)) == [f"{name}.weight" for name, _ in net.convs()]


@pytest.mark.parametrize("address", ["main_comparison.ours.cifar10-binary", "comparison_rn18_rn50.at.rn50-fp"])
def test_shapes_follow_from_the_spec(demo, address):
    """Those that a size depends on, as they are in the network that is built."""
    spec = demo.runs[demo.cells[address].runs[0]].spec
    tensors = {name: tuple(tensor.shape) for name, tensor in finished.network(spec).state_dict().items()}
    assert size.shapes_of(spec).items() <= tensors.items()
    counted = {name for name, shape in tensors.items() if len(shape) == 4 and name not in ("mean", "std")}
    counted |= {name for name in tensors if name.endswith("running_var") or name == "head.bias"}
    assert set(size.shapes_of(spec)) == counted


def test_the_size_of_a_dense_network_needs_no_model_file(demo, folder, tmp_path):
    """Results that came by a clone have none."""
    run = next(run for run in demo.final_runs("comparison_rn18_rn50") if "sparsity" not in demo.runs[run].spec)
    shutil.copytree(folder / paths.run_folder(run), tmp_path / paths.run_folder(run), ignore=shutil.ignore_patterns("*.safetensors"))
    assert size.of_run(run, tmp_path) == size.of_run(run, folder)


def test_a_factorised_network_is_counted_by_its_factors():
    report = {"weights": 900, "nonzero": 800, "nonzero_per_layer": [800], "distinct_values": 999, "stored_entries": 1024, "nonzero_w": 100}
    assert [layer.bits for layer in size.layers_of(report, {}, "x")] == [1000 + 3200]
    binary = report | {"nonzero_z": 100, "distinct_values_z": [2, 2, 1]}
    assert [layer.bits for layer in size.layers_of(binary, {}, "x")] == [1000 + 100 + 5 * 32]


def test_biases_and_batch_norms_count():
    layout = {"stem_norm.running_var": (8,), "stem_norm.weight": (8,), "stem_norm.bias": (8,), "head.bias": (10,), "mean": (1, 3, 1, 1)}
    assert size.kilobytes([], layout) == (8 * 64 + 10 * 32) / 8000


def test_a_manifest_that_does_not_fit_is_named(demo, folder, tmp_path):
    run = needs.subject(demo)
    path = tmp_path / paths.train_manifest(run)
    path.parent.mkdir(parents=True)
    with pytest.raises(UserError, match="train.json: is not the manifest of a finished training"):
        size.of_run(run, tmp_path)
    sealed.write(path, {"report": {"nonzero_per_layer": [1], "distinct_values": 2}, "spec": demo.runs[run].spec})
    with pytest.raises(UserError, match="report.nonzero_per_layer: has 1 entries for 37 convolutions"):
        size.of_run(run, tmp_path)


# Drawing


def test_every_figure_is_drawn_and_describes_itself(demo, folder):
    for name in catalogue.available(demo, folder):
        png, pdf = catalogue.write(demo, name, folder)
        with Image.open(png) as image:
            assert image.text["Title"] == catalogue.FIGURES[name].title
            assert len(image.text["Description"]) > 80
            assert len(np.unique(np.asarray(image.convert("L")))) > 10, "something is drawn"
        assert pdf.read_bytes().startswith(b"%PDF") and pdf.stat().st_size > 5000


def test_equal_results_make_equal_bytes(demo, folder):
    first, second = (style.files_of(drawn(mask_plots.kernels, demo, folder), "t") for _ in range(2))
    assert first == second and set(first) == set(paths.PICTURES)
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
    assert ours == masks.per_kernel(pair.second).tolist() and sum(ours) == 32 * 32
    assert sum(random) == pytest.approx(32 * 32, abs=0.2) and axes.get_yscale() == "log"


def test_alignment_puts_shared_channels_in_the_same_rows(demo, folder):
    pair = masks.read_pair(folder / paths.model(needs.subject(demo)))
    left, out, into, right = (axes.images[0].get_array() for axes in drawn(mask_plots.alignment, demo, folder).figure.axes)
    assert left.reshape(32, -1).any(1).tolist() == out.ravel().tolist() == (masks.per_output(pair.first) > 0).tolist()
    assert right.reshape(32, -1).any(1).tolist() == into.ravel().tolist() == (masks.per_input(pair.second) > 0).tolist()


def test_full_mask_colours_unread_inputs(demo, folder):
    mask = masks.read_pair(folder / paths.model(needs.subject(demo))).second
    bar, picture = (axes.images[0].get_array() for axes in drawn(mask_plots.full, demo, folder).figure.axes)
    unread = masks.per_input(mask) == 0
    assert unread.any() and not unread.all()
    assert bar.ravel().tolist() == (~unread).tolist()
    assert (picture == 1).sum() == mask.sum() and (picture == 2).sum() == unread.sum() * 3 * 96


def test_curves_show_the_history(demo, folder):
    figure = drawn(curves.draw, demo, folder).figure
    for axes, (run,) in zip(figure.axes, needs.curve_runs(demo).values(), strict=True):
        records = history.read(run, folder)
        assert [list(line.get_ydata()) for line in axes.lines] == [[record[key] for record in records] for key, *_ in curves.LINES]
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles[0] == "(a) r = 0.99, p = 0.1" and titles[7] == "(h) r = 0.5, p = 1.0"


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
    assert [text.get_text() for text in paper.texts][:3] == ["2.2", "6.9", "23.0"] and len(paper.texts) == 49
    bold = [text.get_text() for text in paper.texts if text.get_fontweight() == "bold"]
    assert bold == ["35.0", "44.9", "41.0", "43.6", "43.9", "42.9", "43.2"]


def test_sizes_are_shown_once_per_network(demo, folder):
    points = size_plot.points_of(demo, folder)
    cells = [cell for cell in demo.cells_of("comparison_rn18_rn50") if cell.runs]
    known = {run for name in needs.COMPARISONS for run in demo.final_runs(name) if (folder / paths.train_manifest(run)).is_file()}
    assert len(points) == len(known) > len({cell.runs for cell in cells}), "a network that two tables show counts once"
    ours = next(cell for cell in cells if cell.row == "ours" and cell.column == "rn18-binary")
    point = next(point for point in points if point.kilobytes == size.of_run(ours.runs[0], folder).kilobytes and point.method == "Ours")
    assert point.binary and point.dataset == "cifar10" and 0 < point.interval[0] < point.accuracy < point.interval[1] < 1
    assert point.measured
    dense = max(points, key=lambda point: point.kilobytes)
    assert dense.method in ("AT", "TRADES")
    assert not dense.binary
    assert not dense.measured
    assert dense.kilobytes > 10 * point.kilobytes


def test_a_figure_says_which_sizes_were_measured(demo, folder):
    foot = " ".join(text.get_text() for text in drawn(size_plot.draw, demo, folder).figure.texts).replace("\n", " ")
    assert "Size: bytes of the compact file; counted for AT (not pruned, so not packed): positions and values of the kept weights" in foot


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
    assert len(waits["learning_curves"]) == 8 and all(path.endswith("train.json") for path in waits["learning_curves"])
    assert len(waits["ratio_map"]) == 49 and all("/eval/" in path for path in waits["ratio_map"])
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
