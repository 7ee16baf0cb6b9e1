"""Official files compute what they say: checked against a plain functional reading of their layout."""

from __future__ import annotations

import json

import pytest
import torch

from baselines import zoo
from methods import evaluate
from methods.core.errors import UserError
from methods.networks.model_file import load_model
from methods.networks.resnet import Net
from tests.baselines.zoo.cases import CASES, CPU, Case, run
from tests.specs import small


@pytest.mark.parametrize("name", CASES)
def test_official_file_computes_the_same(name, tmp_path, data):
    case = CASES[name]()
    method = zoo.METHOD(case.spec(case.save(tmp_path)), data, device=CPU)
    x = torch.rand(4, 3, 64, 64, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        ours, theirs = method.net.eval()(x), case.forward(x, data)
    assert theirs.std() > 0.01
    assert (ours - theirs).abs().max() < 1e-4 * theirs.abs().max()
    assert method.trainables() == []
    weights = torch.cat([conv.weight.flatten() for _, conv in method.net.convs()])
    report = method.report()
    assert report["nonzero"] == int(weights.count_nonzero())
    if case.kind == "subnet":
        kept = case.keep * weights.numel()
        assert kept <= report["nonzero"] <= kept + len(case.layers)
        assert set(weights.unique().tolist()) == {-1.0, 0.0, 1.0}
    if case.kind == "binaryconnect":
        assert set(weights.unique().tolist()) == {-1.0, 1.0}


def test_mask_is_that_of_the_run(tmp_path, data):
    """The sparsity is not in the file: another one gives another network, with that sparsity."""
    case = CASES["ours"]()
    path = case.save(tmp_path)
    counts = {r: zoo.METHOD(case.spec(path, sparsity=r), data, device=CPU).report()["nonzero"] for r in (0.5, 0.99)}
    total = sum(t.numel() for name, t in case.state.items() if name.endswith("scores"))
    for r, nonzero in counts.items():
        assert abs(nonzero - (1 - r) * total) <= len(case.layers)


def test_run_and_evaluation_of_an_official_file(tmp_path, data, capsys):
    case = CASES["ours"]()
    spec, out = case.spec(case.save(tmp_path)), tmp_path / "zoo.0123456789ab"
    assert run(spec, out) == 0
    manifest = json.loads((out / "train.json").read_text())
    assert manifest["epochs"] == 0
    assert manifest["best_epoch"] is None
    assert manifest["report"]["file_sha256"]
    assert (out / "history.jsonl").read_text() == ""
    net = load_model(out / "model.safetensors")
    assert isinstance(net, Net)
    x = next(iter(data.test.batches(batch=10, device=CPU))).x
    with torch.no_grad():
        torch.testing.assert_close(net(x), case.forward(x, data), rtol=1e-4, atol=1e-4)
    part = tmp_path / "part.json"
    attack = json.dumps({"attack": "clean", "examples": 10, "block": 10})
    assert evaluate.main(["run", "--run", str(out), "--spec", attack, "--shard", "1/1", "--out", str(part)]) == 0
    assert part.exists()


def damaged(change) -> Case:
    case = CASES["ours"]()
    change(case)
    return case


MISTAKES = {
    "last norm not asked for": (lambda c: None, {"lbn": False}, "last"),
    "no last norm in the file": (lambda c: [c.state.pop(k) for k in list(c.state) if k.startswith("last.")], {}, "misses tensor 'last."),
    "affine norms in the run": (lambda c: None, {"bn_affine": True}, "misses tensor 'bn1.weight'"),
    "scores without sparsity": (lambda c: None, {"sparsity": None, "p": None}, "'sparsity' and 'p'"),
    "other depth": (lambda c: None, {"arch": "rn34"}, "misses tensor 'layer1.2"),
    "other block": (lambda c: None, {"arch": "rn50"}, "has shape"),
    "other classes": (lambda c: c.state.update({"fc.weight": torch.ones(3, 64, 1, 1)}), {}, "'fc.weight' has shape (3, 64, 1, 1)"),
    "not finite": (lambda c: c.state["bn1.running_var"].fill_(float("nan")), {}, "NaN"),
    "other normalisation": (lambda c: c.state.update({"0._scale": torch.ones(3)}), {}, "standard deviation"),
    "unknown tensor": (lambda c: c.state.update({"extra.weight": torch.ones(3)}), {}, "extra.weight"),
    "real weights": (lambda c: c.state["fc.weight"].normal_(), {}, "precision: binary"),
    "other network": (lambda c: c.state.pop("conv1.weight"), {}, "conv1.weight"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake_is_an_error(name, tmp_path, data):
    change, keys, message = MISTAKES[name]
    case = damaged(change)
    with pytest.raises(UserError) as error:
        zoo.METHOD(case.spec(case.save(tmp_path), **keys), data, device=CPU)
    assert message in str(error.value)


def test_normalisation_in_the_file_is_accepted_where_it_is_ours(tmp_path, data):
    case = CASES["ours, bottleneck, imagenet stem"]()
    path = case.save(tmp_path)
    saved = torch.load(path)
    saved["state_dict"] |= {"0._bias": torch.tensor(data.mean).view(1, 3, 1, 1), "0._scale": torch.tensor(data.std).view(1, 3, 1, 1)}
    torch.save(saved, path)
    zoo.METHOD(case.spec(path), data, device=CPU)


@pytest.mark.parametrize("content", [b"", b"not a checkpoint", None])
def test_unusable_file_is_one_line(content, tmp_path, capsys):
    path = tmp_path / "model_best.pth"
    if content is not None:
        path.write_bytes(content)
    assert run(CASES["ours"]().spec(path), tmp_path / "out") == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert str(path) in error
    assert not (tmp_path / "out" / "train.json").exists()


def test_unknown_source_names_the_known_ones(data):
    with pytest.raises(UserError, match="robustbench, official"):
        zoo.METHOD(small("zoo", options={"source": "elsewhere"}), data, device=CPU)


def test_recipe_of_the_official_source_is_the_papers_network():
    spec = small("zoo", options={"source": "official", "path": "x.pth"})
    ours = small("binary_subnet")
    assert {k: spec[k] for k in ("arch", "lbn", "bn_affine", "normalize", "head_bias", "precision", "sparsity", "p")} == {
        k: ours[k] for k in ("arch", "lbn", "bn_affine", "normalize", "head_bias", "precision", "sparsity", "p")
    }
    assert spec["options"] == {"source": "official", "path": "x.pth"}
