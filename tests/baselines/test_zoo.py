"""Imported networks compute what their files say: checked against a plain functional reading of the official layout."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from baselines import zoo
from methods import evaluate, train
from methods.core.allocation import allocate
from methods.core.errors import UserError
from methods.data.load import load
from methods.networks.foreign import architecture, robustbench
from methods.networks.model_file import load_model
from methods.networks.resnet import Net
from tests.specs import small

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def data():
    return load("cifar10", source="sample", train=8, val=8)


# -- the official layout, written and read by itself ------------------------------------------------------------------------------


def official_layers(widths, blocks, *, bottleneck, stem, classes, shortcut="shortcut"):
    """(conv name, shape, stride, its batch norm's name) in the order of definition: stem, blocks with their shortcut last, classifier."""
    kernel = 7 if stem == "imagenet" else 3
    yield "conv1", (widths[0], 3, kernel, kernel), 2 if stem == "imagenet" else 1, "bn1"
    c_in, grow = widths[0], 4 if bottleneck else 1
    for stage, (c, count) in enumerate(zip(widths, blocks, strict=True), 1):
        for i in range(count):
            at, stride = f"layer{stage}.{i}", 2 if stage > 1 and i == 0 else 1
            body = [(c, c_in, 1, 1), (c, c, 3, 3), (c * 4, c, 1, 1)] if bottleneck else [(c, c_in, 3, 3), (c, c, 3, 3)]
            strided = 1 if bottleneck else 0
            for j, shape in enumerate(body):
                yield f"{at}.conv{j + 1}", shape, stride if j == strided else 1, f"{at}.bn{j + 1}"
            if stride != 1 or c_in != c * grow:
                yield f"{at}.{shortcut}.0", (c * grow, c_in, 1, 1), stride, f"{at}.{shortcut}.1"
            c_in = c * grow
    yield "fc", (classes, c_in, 1, 1), 1, None


def write_state(layers, *, kind: str, lbn: bool, affine: bool, seed=0) -> dict[str, Tensor]:
    g = torch.Generator().manual_seed(seed)
    state = {}
    for name, shape, _, norm in layers:
        weight = torch.randn(shape, generator=g)
        if kind == "subnet":
            state[f"{name}.weight"] = weight.sign()
            state[f"{name}.scores"] = torch.rand(shape, generator=g) * 2 - 1
        else:
            state[f"{name}.weight"] = weight * 0.7
            if kind == "binaryconnect":
                state[f"{name}.binweight"] = torch.where(weight >= 0, 1.0, -1.0)
        norm = "last" if norm is None and lbn else norm
        if norm is not None:
            state[f"{norm}.running_mean"] = torch.randn(shape[0], generator=g)
            state[f"{norm}.running_var"] = torch.rand(shape[0], generator=g) * 40 + 10
            state[f"{norm}.num_batches_tracked"] = torch.tensor(7)
            if affine:
                state[f"{norm}.weight"] = torch.rand(shape[0], generator=g) + 0.5
                state[f"{norm}.bias"] = torch.randn(shape[0], generator=g)
    return state


def official_forward(state, layers, x, *, kind, keep, p, bottleneck, stem, mean, std) -> Tensor:
    """The official network as functions of its state dict: masks by sorting, normalisation in front."""
    layers = list(layers)
    table = {name: (stride, norm) for name, _, stride, norm in layers}
    fractions = dict(zip(table, allocate([torch.Size(s).numel() for _, s, _, _ in layers], keep, p), strict=True))

    def conv(name, x):
        weight, stride = state[f"{name}.weight"], table[name][0]
        if kind == "subnet":
            scores = state[f"{name}.scores"].abs().flatten()
            order = scores.argsort()
            mask = torch.ones_like(scores)
            mask[order[: int((1 - fractions[name]) * scores.numel())]] = 0
            weight = weight * mask.view(weight.shape)
        elif kind == "binaryconnect":
            weight = torch.where(weight.clamp(-1, 1) >= 0, 1.0, -1.0)
        return F.conv2d(x, weight, stride=stride, padding=(weight.shape[-1] - 1) // 2)

    def norm(name, x):
        affine = state.get(f"{name}.weight"), state.get(f"{name}.bias")
        return F.batch_norm(x, state[f"{name}.running_mean"], state[f"{name}.running_var"], *affine, eps=1e-5)

    x = (x - torch.tensor(mean).view(1, 3, 1, 1)) / torch.tensor(std).view(1, 3, 1, 1)
    x = F.relu(norm("bn1", conv("conv1", x)))
    if stem == "imagenet":
        x = F.max_pool2d(x, 3, 2, padding=1)
    for at in dict.fromkeys(name.rsplit(".", 1)[0] for name in table if name.startswith("layer") and name.endswith("conv1")):
        out, depth = x, 3 if bottleneck else 2
        for j in range(1, depth + 1):
            out = norm(f"{at}.bn{j}", conv(f"{at}.conv{j}", out))
            out = F.relu(out) if j < depth else out
        short = next((k for k in ("shortcut", "downsample") if f"{at}.{k}.0" in table), None)
        x = F.relu(out + (norm(f"{at}.{short}.1", conv(f"{at}.{short}.0", x)) if short else x))
    x = conv("fc", x.mean((2, 3), keepdim=True))
    return (norm("last", x) if "last.running_mean" in state else x).flatten(1)


class Case:
    def __init__(
        self, arch, widths, blocks, *, bottleneck=False, stem="cifar", kind="subnet", lbn=True, affine=False, prefix="", keep=0.05
    ):
        self.arch, self.kind, self.lbn, self.affine, self.prefix, self.keep, self.p = arch, kind, lbn, affine, prefix, keep, 0.1
        self.stem, self.bottleneck = stem, bottleneck
        short = "downsample" if stem == "imagenet" else "shortcut"
        self.layers = list(official_layers(widths, blocks, bottleneck=bottleneck, stem=stem, classes=10, shortcut=short))
        self.state = write_state(self.layers, kind=kind, lbn=lbn, affine=affine)

    def save(self, folder: Path) -> Path:
        path = folder / "model_best.pth"
        named = {self.prefix + name: t for name, t in self.state.items()}
        torch.save({"epoch": 400, "arch": self.arch, "state_dict": named, "best_valid_acc1": 48.2}, path)
        return path

    def spec(self, path: Path, **changes) -> dict:
        sparse = {"sparsity": 1 - self.keep, "p": self.p} if self.kind == "subnet" else {"sparsity": None, "p": None}
        precision = "fp" if self.kind == "dense" else "binary"
        options = {"source": "official", "path": str(path)}
        keys = {"arch": self.arch, "lbn": self.lbn, "bn_affine": self.affine, "precision": precision, "options": options, **sparse}
        return small("zoo", **keys | changes)

    def forward(self, x: Tensor, data) -> Tensor:
        how = {"kind": self.kind, "keep": self.keep, "p": self.p, "bottleneck": self.bottleneck, "stem": self.stem}
        return official_forward(self.state, self.layers, x, **how, mean=data.mean, std=data.std)


CASES = {
    "ours": lambda: Case("rn18", (8, 16, 32, 64), (2, 2, 2, 2)),
    "ours, two devices": lambda: Case("rn34", (8, 16, 32, 64), (3, 4, 6, 3), prefix="module.1."),
    "ours, bottleneck, imagenet stem": lambda: Case("rn50", (8, 16, 32, 64), (3, 4, 6, 3), bottleneck=True, stem="imagenet", prefix="1."),
    "binaryconnect, small": lambda: Case("small_rn34_p10", (6, 13, 26, 51), (3, 4, 6, 3), kind="binaryconnect", affine=True, prefix="1."),
    "dense, no last norm": lambda: Case("small_rn18_p01", (23, 25, 27, 29), (2, 2, 2, 2), kind="dense", affine=True, lbn=False),
}


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


def run(spec: dict, out: Path) -> int:
    return train.main(["--spec", json.dumps(spec), "--out", str(out)])


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


# -- RobustBench ------------------------------------------------------------------------------------------------------------------


class Tiny(nn.Module):
    """A network that a zoo could hold."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, stride=4)
        self.norm = nn.BatchNorm2d(8)
        self.fc = nn.Linear(8, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(F.relu(self.norm(self.conv(x))).mean((2, 3)))


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """The zoo with one model more, whose weights have been downloaded already; RobustBench's own code finds and loads them."""
    package = robustbench()
    models = package.all_models[package.BenchmarkDataset.cifar_10][package.ThreatModel.Linf]
    monkeypatch.setitem(models, "Tiny2024Small", {"model": Tiny, "gdrive_id": "none"})
    monkeypatch.setattr(package, "download_gdrive_new", lambda *_: pytest.fail("tried to download"))
    torch.manual_seed(3)
    net = Tiny()
    net.norm.running_mean.normal_()
    path = tmp_path / "models" / "cifar10" / "Linf" / "Tiny2024Small.pt"
    path.parent.mkdir(parents=True)
    torch.save({"state_dict": {f"module.{k}": v for k, v in net.state_dict().items()}}, path)
    return net.eval(), path


def robustbench_spec(folder: Path, model: str = "Tiny2024Small", **keys) -> dict:
    return small("zoo", options={"source": "robustbench", "model": model, "threat": "Linf", "path": str(folder)}, **keys)


def test_robustbench_model_becomes_a_run(tiny, tmp_path, data):
    net, path = tiny
    out = tmp_path / "zoo.0123456789ab"
    assert run(robustbench_spec(tmp_path / "models"), out) == 0
    path.unlink()  # the run's own file is enough
    loaded = load_model(out / "model.safetensors")
    x = torch.rand(4, 3, 32, 32)
    with torch.no_grad():
        torch.testing.assert_close(loaded(x), net(x))
    report = json.loads((out / "train.json").read_text())["report"]
    assert report["robustbench"] == {"model": "Tiny2024Small", "dataset": "cifar10", "threat": "Linf"}
    assert report["weights"] == 8 * 27 + 80
    part = tmp_path / "part.json"
    attack = json.dumps({"attack": {"version": "pgd", "steps": 2}, "examples": 10, "block": 10})
    assert evaluate.main(["run", "--run", str(out), "--spec", attack, "--shard", "1/1", "--out", str(part)]) == 0
    assert part.exists()


def test_robustbench_names_near_the_wrong_one(tiny, tmp_path, data):
    with pytest.raises(UserError, match="Engstrom2019Robustness"):
        zoo.METHOD(robustbench_spec(tmp_path, "Engstrom2019"), data, device=CPU)
    with pytest.raises(UserError, match="no models for imagenet100"):
        zoo.METHOD(robustbench_spec(tmp_path) | {"dataset": "imagenet100"}, data, device=CPU)


def test_failed_loading_says_where_the_weights_belong(tiny, tmp_path, data):
    tiny[1].write_bytes(b"half a downlo")
    with pytest.raises(UserError, match="Tiny2024Small.pt") as error:
        zoo.METHOD(robustbench_spec(tmp_path / "models"), data, device=CPU)
    assert "weights_only" not in str(error.value)
    torch.save(tiny[0], tiny[1])
    with pytest.raises(UserError, match="holds a Python object") as error:
        zoo.METHOD(robustbench_spec(tmp_path / "models"), data, device=CPU)
    assert "trust" not in str(error.value)


def test_a_real_entry_of_the_zoo_can_be_built():
    net = architecture("Wong2020Fast", "cifar10", "Linf")
    assert sum(p.numel() for p in net.parameters()) == 11171146
    with torch.no_grad():
        assert net(torch.rand(1, 3, 32, 32)).shape == (1, 10)


def test_recipe_of_the_official_source_is_the_papers_network():
    spec = small("zoo", options={"source": "official", "path": "x.pth"})
    ours = small("binary_subnet")
    assert {k: spec[k] for k in ("arch", "lbn", "bn_affine", "normalize", "head_bias", "precision", "sparsity", "p")} == {
        k: ours[k] for k in ("arch", "lbn", "bn_affine", "normalize", "head_bias", "precision", "sparsity", "p")
    }
    assert spec["options"] == {"source": "official", "path": "x.pth"}
