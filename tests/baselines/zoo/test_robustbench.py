"""Models of RobustBench become runs, through RobustBench's own code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from baselines import zoo
from methods import evaluate
from methods.core.errors import UserError
from methods.networks.foreign import architecture, robustbench
from methods.networks.model_file import load_model
from tests.baselines.zoo.cases import CPU, run
from tests.specs import small


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
