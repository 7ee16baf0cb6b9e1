"""How many processes a run has, and the GPUs that they take."""

import pytest
import torch
from torch.distributed import HashStore

from methods.core.errors import UserError
from methods.core.run_spec import processes
from methods.core.settings import gpus_per_run
from methods.distributed import torchrun
from methods.runtime import device
from tests.methods.distributed.launched import RUNS, TWO


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
