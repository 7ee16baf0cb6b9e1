"""Several processes that train one run have the result of one process. Real torchrun, gloo."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from methods.core.errors import UserError
from methods.distributed.world import ALONE, World
from methods.networks.model_file import load_tensors
from methods.training.loop import share_out
from tests.baselines.toy_runs import make, sample
from tests.methods.distributed.launched import TIMEOUT, TWO, environ, finish
from tests.methods.distributed.worker import PER_DEVICE, jobs
from tests.specs import small


def call(*words: str) -> None:
    done = subprocess.run([sys.executable, "-m", *words], env=environ(), capture_output=True, text=True, timeout=TIMEOUT)
    assert done.returncode == 0, done.stderr[-5000:]


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> tuple[Path, Path]:
    """The folders of what one process and two have trained."""
    one, two = (tmp_path_factory.mktemp(name) for name in ("one", "two"))
    call("tests.methods.distributed.worker", str(one))
    call("torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "tests.methods.distributed.worker", str(two))
    return one, two


def read(folders: tuple[Path, Path], name: str) -> list[dict]:
    return [torch.load(folder / f"{name}.pt") for folder in folders]


def assert_close(one: dict[str, torch.Tensor], two: dict[str, torch.Tensor]) -> None:
    assert one.keys() == two.keys()
    for name, tensor in one.items():
        size = tensor.double().abs().max().item()
        torch.testing.assert_close(two[name], tensor, rtol=0, atol=1e-7 * max(size, 1e-3), msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.parametrize("name", [name for name, *_ in jobs()])
def test_two_processes_train_every_method_as_one(trained, name):
    one, two = read(trained, name)
    assert_close(one["tensors"], two["tensors"])
    assert len(one["history"]) == len(two["history"]) > 0
    for ours, theirs in zip(one["history"], two["history"], strict=True):
        assert theirs == {key: pytest.approx(value, rel=1e-5, abs=1e-7) for key, value in ours.items()}


def test_norms_per_device_are_those_of_each_half(trained):
    by_hand, two = read(trained, "per-device")
    assert_close(by_hand["tensors"], two["tensors"])


def test_norms_per_device_are_others_than_synchronised_ones(trained):
    """The same run but for that choice: already the first norm has seen other means."""
    own, synchronised = (read(trained, name)[1]["tensors"]["net.stem_norm.running_mean"] for name in ("per-device", "synchronised"))
    assert (own - synchronised).abs().max() > 0.01 * synchronised.abs().max()


def test_a_run_with_norms_per_device_starts_as_many_processes(tmp_path):
    finish(PER_DEVICE, tmp_path, gpus="{}")
    assert json.loads((tmp_path / "train.json").read_text())["provenance"]["processes"] == 2


def test_processes_that_come_apart_are_noticed(trained):
    one, two = (result["message"] for result in read(trained, "come-apart"))
    assert one == ""
    assert "have come apart in 1 tensor(s) (other)" in two


def test_single_precision_agrees_where_no_sign_or_kink_decides(tmp_path):
    """Loss and statistics of one step on clean images, from the command itself."""
    spec = small("at", arch="rn18", eps=0, rewrite={"data.train": 23, "train.epochs": 1})
    for name, gpus in (("one", "{}"), ("two", TWO)):
        finish(spec, tmp_path / name, gpus=gpus)
    one, two = (json.loads((tmp_path / name / "history.jsonl").read_text()) for name in ("one", "two"))
    assert two["train_loss"] == pytest.approx(one["train_loss"], rel=1e-5)
    one, two = (load_tensors(tmp_path / name / "model.safetensors")[0] for name in ("one", "two"))
    for name in (name for name in one if "running" in name):
        torch.testing.assert_close(two[name], one[name], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("world", "images", "message"),
    [
        (ALONE, 48, "'train.bn_devices: 2' means statistics per device, but 1 process"),
        (World(rank=1, size=3), 48, "but 3 process.* --nproc-per-node 2"),
        (World(rank=1, size=2), 51, "the smallest batch of an epoch has 3 images, and each device needs two"),
    ],
)
def test_norms_per_device_that_cannot_be_are_refused_before_training(world, images, message):
    data = sample(images)
    with pytest.raises(UserError, match=message):
        share_out(make("at", PER_DEVICE, data), data, world)
