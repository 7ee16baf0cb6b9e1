"""Compact files: every pruned network reads back to the bit, dense ones are refused, a file of the first day stays readable."""

from __future__ import annotations

import hashlib
import json
from math import sqrt
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from methods import load_network, train
from methods.compact import load_picture, main, side_of
from methods.core import paths, sealed
from methods.core.errors import UserError
from methods.core.signs import signs
from methods.networks import compact
from methods.networks.compact.writer import encode
from methods.networks.model_file import load_model, save_model
from methods.networks.resnet import Net, build
from tests.methods.networks.trained import trained
from tests.specs import small, text

PINNED = Path(__file__).parent / "pinned.rbs"


def masked(net: Net, keep: float = 0.1, *, size: float = 1.0, seed: int = 3) -> Net:
    """The network with random masks over the law's signs, and statistics that are no round numbers."""
    draws = torch.Generator().manual_seed(0)
    for name, conv in net.convs():
        drawn = torch.from_numpy(signs(seed, name, conv.weight.numel())).view(conv.weight.shape) * size
        conv.weight.data.copy_(drawn * (torch.rand(conv.weight.shape, generator=draws) < keep))
    for norm in net.norms():
        norm.running_mean.normal_(generator=draws)
        norm.running_var.uniform_(0.5, 2, generator=draws)
        norm.num_batches_tracked.fill_(17)
    return net.eval()


def same(a: torch.nn.Module, b: torch.nn.Module) -> None:
    ours, theirs = a.state_dict(), b.state_dict()
    assert list(ours) == list(theirs)
    for name in ours:
        assert ours[name].dtype == theirs[name].dtype, name
        assert torch.equal(ours[name], theirs[name]), name
    x = torch.rand(4, 3, 32, 32, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        assert torch.equal(a(x), b(x))


NETWORKS = [
    ("binary_subnet", "binary", {"law"}),
    ("rst", "fp", {"law"}),
    ("bcs", "binary", {"law"}),
    ("bcs", "fp", {"real"}),
    ("flyingbird", "binary", {"codebook"}),
    ("flyingbird", "fp", {"real"}),
    ("hydra", "binary", {"codebook"}),
    ("hydra", "fp", {"real"}),
    ("atmc", "binary", {"codebook", "real"}),
    ("atmc", "fp", {"real"}),
]


@pytest.mark.parametrize(("method", "precision", "kinds"), NETWORKS)
def test_every_pruned_network_reads_back_to_the_bit(method, precision, kinds, tmp_path):
    net, spec = trained(method, precision=precision)
    size = compact.pack(net, spec, tmp_path / "net.rbs")
    back, header = compact.read(tmp_path / "net.rbs")
    same(net, back)
    assert size == (tmp_path / "net.rbs").stat().st_size
    assert size == compact.packed_size(net, spec)
    assert header.spec == json.loads(json.dumps(spec))
    digest = save_model(net, spec, tmp_path / "model.safetensors")
    assert compact.unpack(tmp_path / "net.rbs", tmp_path / "again.safetensors") == digest, "byte for byte"
    assert {layer.values for layer in header.layers if layer.kept > 1} <= kinds


@pytest.mark.parametrize("method", ["at", "binaryconnect"])
def test_dense_networks_are_refused_with_the_reason(method, tmp_path):
    net, spec = trained(method)
    with pytest.raises(UserError, match=r"the network is dense: it keeps \d+ of \d+ weights"):
        compact.pack(net, spec, tmp_path / "net.rbs")
    assert compact.packed_size(net, spec) is None
    assert not (tmp_path / "net.rbs").exists()


@pytest.mark.parametrize("arch", ["rn18", "rn34", "rn50", "small_rn34_p10"])
@pytest.mark.parametrize("options", [{}, {"lbn": True, "bn_affine": True, "head_bias": True, "stem": "imagenet", "classes": 100}])
def test_every_architecture_reads_back(arch, options, tmp_path):
    net = masked(build(arch, width=0.125, mean=(0.5, 0.4, 0.3), std=(0.2, 0.3, 0.4), **{"classes": 10, **options}))
    compact.pack(net, {"seed": 3}, tmp_path / "net.rbs")
    same(net, load_network(str(tmp_path / "net.rbs")))


def test_a_minus_zero_is_written_as_zero(tmp_path):
    """A pruned negative weight is -0.0 in a network in training; compact files do not know it, so model files must not either."""
    net = masked(build("rn18", classes=10, width=1))
    net.stem.weight.data[net.stem.weight == 0] = -0.0
    compact.pack(net, {"seed": 3}, tmp_path / "net.rbs")
    digest = save_model(net, {"seed": 3}, tmp_path / "model.safetensors")
    assert compact.unpack(tmp_path / "net.rbs", tmp_path / "again.safetensors") == digest


def test_random_signs_cost_nothing():
    """The same masks with signs of another seed cost one bit per kept weight more, and their magnitude nothing either way."""
    net = build("rn18", classes=10, width=0.5)
    by_law, other = (len(encode(masked(net, 0.05, size=sqrt(2)), {"seed": seed})) for seed in (3, 4))
    kept = sum(int(conv.weight.count_nonzero()) for _, conv in net.convs())
    assert other - by_law == pytest.approx(kept / 8, rel=0.03)


def test_layers_may_be_empty_or_full_and_variances_infinite(tmp_path):
    net = masked(build("rn18", classes=10, width=0.125))
    net.stem.weight.data.fill_(0.25)
    net.blocks[3].convs[1].weight.data.zero_()
    net.blocks[3].norms[1].running_var[0] = torch.inf
    compact.pack(net, {"seed": 3}, tmp_path / "net.rbs")
    same(net, load_network(tmp_path / "net.rbs"))


def test_half_is_smaller_is_said_and_rounds_nothing_else(tmp_path):
    net, spec = trained("flyingbird", precision="fp")
    exact = compact.pack(net, spec, tmp_path / "exact.rbs")
    assert compact.pack(net, spec, tmp_path / "half.rbs", half=True) < 0.8 * exact
    with pytest.warns(UserWarning, match="half.rbs: its weights were rounded to float16 when it was packed"):
        back, header = compact.read(tmp_path / "half.rbs")
    assert header.half
    for name, tensor in back.state_dict().items():
        original = net.state_dict()[name]
        assert torch.equal(tensor, original.half().float() if tensor.ndim == 4 and name != "mean" and name != "std" else original), name
    with pytest.raises(UserError, match="float16 would change nothing; leave --half out"):
        compact.pack(*trained("binary_subnet", precision="binary"), tmp_path / "ours.rbs", half=True)
    net = build("rn18", classes=10, width=0.125)
    masked(net).stem.weight.data[0] = torch.randn(3, 3, 3) * 1e6
    with pytest.raises(UserError, match="does not fit into float16"):
        compact.pack(net, {"seed": 9}, tmp_path / "large.rbs", half=True)


def test_what_is_no_network_of_ours_is_refused(tmp_path):
    with pytest.raises(UserError, match="a Linear network is not one of the suite's"):
        compact.pack(torch.nn.Linear(2, 2), {}, tmp_path / "net.rbs")
    net = masked(build("rn18", classes=10, width=0.125))
    with pytest.raises(UserError, match="compact files hold finite float32 numbers"):
        compact.pack(net.double(), {}, tmp_path / "net.rbs")


def digest(net: Net) -> str:
    return hashlib.sha256(b"".join(tensor.numpy().tobytes() for tensor in net.state_dict().values())).hexdigest()


def test_a_file_of_the_first_day_stays_readable():
    """Written once and never again: law, codebook and real values in one file. If this fails, the reader is wrong, not the file."""
    net, header = compact.read(PINNED)
    assert digest(net) == "6d8a34276d99cbf7b72db58e6b7f1b29e2995587622029c08a249fe2a55bfc83"
    assert header.law == "robust-binary-subnets signs 1"
    assert {layer.values for layer in header.layers} == {"law", "codebook", "real"}
    assert len(encode(net, header.spec)) <= PINNED.stat().st_size


def test_commands(tmp_path, capsys):
    net, spec = trained("binary_subnet", precision="binary")
    run = tmp_path / "run"
    manifest = {"model_sha256": save_model(net, spec, run / paths.MODEL)}
    sealed.write(run / paths.MANIFEST, manifest)
    assert main(["pack", str(run), str(tmp_path / "net.rbs")]) == 0
    assert main(["unpack", str(tmp_path / "net.rbs"), str(tmp_path / "back.safetensors")]) == 0
    assert main(["pack", str(tmp_path / "back.safetensors"), str(tmp_path / "again.rbs")]) == 0
    assert (tmp_path / "again.rbs").read_bytes() == (tmp_path / "net.rbs").read_bytes()
    same(net, load_model(tmp_path / "back.safetensors"))
    said = capsys.readouterr().out
    assert f"net.rbs: {(tmp_path / 'net.rbs').stat().st_size:,} bytes: rn18, " in said
    assert "signs drawn from the seed" in said
    (run / paths.MODEL).write_bytes(b"x")
    assert main(["pack", str(run), str(tmp_path / "net.rbs")]) == 2
    assert "is damaged, or not the file that train.json describes" in capsys.readouterr().err


def test_a_run_that_came_without_its_model_file(tmp_path):
    net, spec = trained("binary_subnet", precision="binary")
    digest = save_model(net, spec, tmp_path / paths.MODEL)
    sealed.write(tmp_path / paths.MANIFEST, {"model_sha256": digest})
    compact.pack(net, spec, tmp_path / paths.COMPACT)
    (tmp_path / paths.MODEL).unlink()
    assert compact.run_model(tmp_path) == (tmp_path / paths.MODEL, digest)
    same(net, load_model(tmp_path / paths.MODEL))
    sealed.write(tmp_path / paths.MANIFEST, {"model_sha256": "of another network"})
    (tmp_path / paths.MODEL).unlink()
    with pytest.raises(UserError, match="is damaged, or not the file that train.json describes"):
        compact.run_model(tmp_path)


@pytest.mark.parametrize(
    ("spec", "stem", "side"),
    [
        ({}, "cifar", 32),
        ({"data": {"size": 16}}, "cifar", 16),
        ({"data": {"size": 10**9}}, "cifar", 32),
        ({"data": {"size": "16"}}, "cifar", 32),
        ({"data": 3}, "imagenet", 224),
    ],
)
def test_pictures_get_the_size_of_the_images_of_the_training(spec, stem, side, tmp_path):
    net = masked(build("rn18", classes=10, width=0.0625, stem=stem))
    compact.pack(net, {"seed": 3, **spec}, tmp_path / "net.rbs")
    assert side_of(compact.read(tmp_path / "net.rbs")[1]) == side
    Image.new("RGB", (300, 260), "red").save(tmp_path / "red.png")
    picture = load_picture(tmp_path / "red.png", side)
    assert picture.shape == (1, 3, side, side)
    assert picture.mean((0, 2, 3)).tolist() == [1, 0, 0]


def test_prediction_says_class_chances_and_time(tmp_path, capsys):
    net, spec = trained("binary_subnet", precision="binary")
    compact.pack(net, spec, tmp_path / "net.rbs")
    pixels = np.random.default_rng(0).integers(0, 256, (32, 32, 3), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "picture.png")
    assert main(["predict", str(tmp_path / "net.rbs"), str(tmp_path / "picture.png"), "--top", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    with torch.no_grad():
        chances = net(torch.from_numpy(pixels).permute(2, 0, 1)[None].float() / 255).softmax(1)[0]
    names = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
    best = chances.argsort(descending=True)[:3].tolist()
    assert [line.split() for line in lines[:3]] == [[f"{chances[i]:.2%}", names[i]] for i in best]
    assert "one image in" in lines[3]
    Image.fromarray(pixels[:20]).save(tmp_path / "small.png")
    assert main(["predict", str(tmp_path / "net.rbs"), str(tmp_path / "small.png")]) == 0
    assert "was cut and resized to 32 x 32 pixels" in capsys.readouterr().err
    (tmp_path / "no.png").write_text("no picture")
    assert main(["predict", str(tmp_path / "net.rbs"), str(tmp_path / "no.png")]) == 2
    assert "no.png: cannot be read as an image" in capsys.readouterr().err


@pytest.mark.parametrize(("method", "packed"), [("binary_subnet", True), ("at", False)])
def test_a_training_leaves_the_compact_file_and_its_size(method, packed, tmp_path):
    spec = small(method, arch="rn18", rewrite={"train.epochs": 1, "data.train": 48, "data.val": 8})
    (tmp_path / paths.COMPACT).write_text("of an earlier training")
    assert train.main(["--spec", text(spec), "--out", str(tmp_path)]) == 0
    manifest = sealed.read(tmp_path / paths.MANIFEST)
    if packed:
        assert manifest["bytes"] == (tmp_path / paths.COMPACT).stat().st_size
        same(load_model(tmp_path / paths.MODEL), load_network(tmp_path / paths.COMPACT))
        assert compact.unpack(tmp_path / paths.COMPACT, tmp_path / "again.safetensors") == manifest["model_sha256"]
    else:
        assert manifest["bytes"] is None
        assert not (tmp_path / paths.COMPACT).exists()
