"""The size of a network: bytes of its file, or bits of its layers."""

import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file

from methods.core import paths, sealed
from methods.core.errors import UserError
from methods.networks import compact
from methods.networks.model_file import load_model
from tests.workflow import finished
from workflow.suite.figures import needs
from workflow.suite.results import size
from workflow.suite.results.size import Layer


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
    assert size.convolutions(finished.shapes("rn34", 0.125)) == [f"{name}.weight" for name, _ in net.convs()]


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
