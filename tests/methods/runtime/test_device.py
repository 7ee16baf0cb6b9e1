"""Devices: one GPU per job by file lock, only visible ones, and no training on a CPU that was not asked for. No GPU is needed for that."""

import os
import signal
import tempfile
import threading

import pytest
import torch

from methods import train
from methods.core.errors import UserError
from methods.runtime import device
from tests.specs import small, text


@pytest.fixture
def two_gpus(monkeypatch, tmp_path):
    """A machine on which torch sees two GPUs; returns the folder of their locks."""
    chosen = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for name in ("CUDA_VISIBLE_DEVICES", "SLURM_JOB_ID", "SUITE_DEVICE"):
        monkeypatch.delenv(name, raising=False)
    device._own_gpu.cache_clear()
    yield chosen
    device._own_gpu.cache_clear()


@pytest.mark.parametrize(
    ("chosen", "count", "names"),
    [(None, 2, ["0", "1"]), ("3, 5", 2, ["3", "5"]), ("GPU-8932f937", 1, ["GPU-8932f937"]), ("2,-1,0", 1, ["2"]), ("", 0, [])],
)
def test_visible(chosen, count, names):
    assert device.visible({} if chosen is None else {"CUDA_VISIBLE_DEVICES": chosen}, count) == names


def test_each_claim_gets_a_gpu_of_its_own_and_the_next_waits(tmp_path, capfd):
    held = [device.claim(["4", "7"], tmp_path) for _ in range(2)]
    assert [index for index, _ in held] == [0, 1]
    late = []
    thread = threading.Thread(target=lambda: late.append(device.claim(["4", "7"], tmp_path, pause=0.01)))
    thread.start()
    thread.join(0.2)
    assert not late
    held[1][1].release()
    thread.join(60)
    assert late[0][0] == 1
    assert "waiting: other jobs hold the GPUs 4, 7" in capfd.readouterr().err


def test_a_killed_job_frees_its_gpu(tmp_path):
    ready, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        mine = device.claim(["0"], tmp_path)  # noqa: F841
        os.write(write, b"x")
        signal.pause()
    os.read(ready, 1)
    assert device._lock(tmp_path, "0") is None
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert device._lock(tmp_path, "0") is not None
    os.close(ready)
    os.close(write)


def test_a_process_keeps_its_gpu_and_leaves_the_taken_one(two_gpus, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5")
    _, other = device.claim(["3"], device.lock_folder(os.environ))
    assert device.device() == device.device() == torch.device("cuda", 1)
    assert two_gpus == [1], "torch's current device is set once"
    other.release()


def test_numbers_inside_a_slurm_job_are_its_own(two_gpus):
    assert device.lock_folder({"SLURM_JOB_ID": "17"}) != device.lock_folder({"SLURM_JOB_ID": "18"}) != device.lock_folder({})


def test_a_cpu_can_be_insisted_on(two_gpus, monkeypatch):
    monkeypatch.setenv("SUITE_DEVICE", "cpu")
    assert device.device() == torch.device("cpu")
    assert two_gpus == []


def test_locks_that_cannot_be_kept_are_a_clear_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="GPU locks cannot be kept there .*; set TMPDIR"):
        device.claim(["0"], tmp_path / "file" / "locks")


def test_a_scale_that_needs_a_gpu_does_not_start_without(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setenv("SUITE_DEVICE", "cuda")
    code = train.main(["--spec", text(small("binary_subnet", arch="rn18")), "--out", str(tmp_path / "run")])
    assert code == 2
    assert "needs a GPU and torch sees none" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
