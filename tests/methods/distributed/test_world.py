"""Several processes that train one run: the result of one process, whatever is killed on the way. Real torchrun, real signals, gloo."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from torch.distributed import HashStore

from methods.core.errors import UserError
from methods.core.run_spec import processes
from methods.core.settings import gpus_per_run
from methods.distributed import torchrun
from methods.distributed.world import ALONE, World
from methods.networks.model_file import load_tensors
from methods.runtime import device
from methods.training.loop import share_out
from tests.baselines.toy_runs import make, sample
from tests.methods.distributed.worker import PER_DEVICE, jobs
from tests.methods.training.test_resume import results, wait_for_state
from tests.specs import small, text

TIMEOUT = 1200
TWO = json.dumps({"cifar10": 2})
# The last batch of an epoch has 11 images: uneven parts.
RUNS = {
    "pgd": small("binary_subnet", arch="rn18", rewrite={"data.train": 83}),
    "atta": small("binary_subnet", arch="rn18", attack={"name": "fgsm_atta"}, rewrite={"data.train": 83}),
}


def environ(**more: str) -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "SUITE_DEVICE": "cpu", **more}


def call(*words: str) -> None:
    done = subprocess.run([sys.executable, "-m", *words], env=environ(), capture_output=True, text=True, timeout=TIMEOUT)
    assert done.returncode == 0, done.stderr[-5000:]


def start(spec: dict, out: Path, *, gpus: str = TWO, save_every: float = 0.0) -> subprocess.Popen:
    """A training as Snakemake starts it, by two processes unless told otherwise."""
    command = [sys.executable, "-m", "methods.train", "--spec", text(spec), "--out", str(out), "--save-every", str(save_every)]
    quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen(command, env=environ(SUITE_GPUS_PER_RUN=gpus), **quiet)


def finish(spec: dict, out: Path, *, gpus: str = TWO) -> str:
    process = start(spec, out, gpus=gpus, save_every=1e9)
    output, _ = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 0, output
    return output


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
    one, two = (found["message"] for found in read(trained, "come-apart"))
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


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> dict[str, tuple[bytes, str]]:
    found = {}
    for name, spec in RUNS.items():
        out = tmp_path_factory.mktemp(name)
        finish(spec, out)
        assert not (out / "state").exists(), "a finished run leaves no training state"
        found[name] = results(out)
    return found


def test_sigterm_stops_all_at_one_step(undisturbed, tmp_path):
    process = start(RUNS["atta"], tmp_path)
    wait_for_state(process, tmp_path, 2)
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 75, output
    assert "run the same command again" in output
    assert not (tmp_path / "train.json").exists()
    assert "resumed at epoch" in finish(RUNS["atta"], tmp_path)
    assert results(tmp_path) == undisturbed["atta"]


def test_sigkill_takes_all_processes_along(undisturbed, tmp_path):
    process = start(RUNS["pgd"], tmp_path)
    wait_for_state(process, tmp_path, 3)
    process.kill()
    process.communicate(timeout=TIMEOUT)  # the pipe closes when the last process that writes to it is gone
    assert "resumed at epoch" in finish(RUNS["pgd"], tmp_path)
    assert results(tmp_path) == undisturbed["pgd"]


def test_a_killed_worker_ends_the_run_and_loses_nothing(undisturbed, tmp_path):
    process = start(RUNS["pgd"], tmp_path)
    wait_for_state(process, tmp_path, 2)
    while not (found := progress(tmp_path)):
        time.sleep(0.01)
    os.kill(found["pid"], signal.SIGKILL)
    output, _ = process.communicate(timeout=TIMEOUT)
    assert process.returncode != 0, output
    assert "resumed at epoch" in finish(RUNS["pgd"], tmp_path)
    assert results(tmp_path) == undisturbed["pgd"]


def progress(out: Path) -> dict | None:
    try:
        return json.loads((out / "state" / "progress.json").read_text())
    except (OSError, ValueError):
        return None


def test_two_processes_go_on_from_the_state_of_one(tmp_path):
    process = start(RUNS["pgd"], tmp_path, gpus="{}")
    wait_for_state(process, tmp_path, 2)
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 75, output
    assert "resumed at epoch" in finish(RUNS["pgd"], tmp_path)
    assert json.loads((tmp_path / "train.json").read_text())["provenance"]["processes"] == 2


def test_an_error_of_a_process_is_that_of_the_run(tmp_path):
    process = start({**RUNS["pgd"], "method": "alchemy"}, tmp_path)
    output, _ = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 2, output
    assert "error: unknown 'method: alchemy'" in output


@pytest.mark.parametrize(
    ("more", "value", "count"),
    [({}, None, 1), ({}, TWO, 2), ({}, '{"imagenet100": 4}', 1), ({"bn_devices": 3}, None, 3), ({"bn_devices": 3}, TWO, 3)],
)
def test_how_many_processes(more, value, count):
    spec = {**RUNS["pgd"], "train": {**RUNS["pgd"]["train"], **more}}
    assert processes(spec, gpus_per_run({} if value is None else {"SUITE_GPUS_PER_RUN": value})) == count


@pytest.mark.parametrize("value", ["4", "{", '{"cifar10": 0}', '{"cifar10": "two"}'])
def test_a_wrong_number_of_processes_is_refused(value):
    with pytest.raises(UserError, match="SUITE_GPUS_PER_RUN=.*must be JSON"):
        gpus_per_run({"SUITE_GPUS_PER_RUN": value})


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


def test_several_gpus_are_taken_together_or_not_at_all(tmp_path):
    _, held = device.claim(["1"], tmp_path)

    def enough(_: float) -> None:
        """Called while waiting: nothing is held, until the other job ends."""
        free = [device._lock(tmp_path, name) for name in "023"]
        assert None not in free, "GPUs are kept while others are waited for"
        for lock in free:
            lock.release()
        held.release()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(device.time, "sleep", enough)
        taken = device.claim_all(["0", "1", "2", "3"], tmp_path, 4)
    assert [index for index, _ in taken] == [0, 1, 2, 3]


def test_each_process_has_a_gpu_of_its_own(tmp_path, monkeypatch):
    """The first process of a machine takes those of all, the others are told; one that another job holds is left."""
    store, chosen = HashStore(), []
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    monkeypatch.setattr(device, "lock_folder", lambda _: tmp_path)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    _, held = device.claim(["1"], tmp_path)
    for rank, index in ((0, 0), (1, 2)):
        for name, value in {"GROUP_RANK": 0, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": 2}.items():
            monkeypatch.setenv(name, str(value))
        assert torchrun._gpu(store) == torch.device("cuda", index)
    assert chosen == [0, 2]
    assert device._lock(tmp_path, "0") is None, "held until the process ends"
    held.release()


def test_more_gpus_than_there_are_is_an_error(tmp_path):
    with pytest.raises(UserError, match="asks for 3 GPUs and torch sees 2"):
        device.claim_all(["0", "1"], tmp_path, 3)
