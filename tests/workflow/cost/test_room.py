"""Several Runs on one GPU: slots of its lock, and the memory that limits them."""

from dataclasses import replace
from pathlib import Path

import pytest

from methods.core import settings
from methods.core.errors import UserError
from methods.runtime import device
from workflow.suite.cost import devices, limits
from workflow.suite.planning import plan


def test_jobs_spread_over_gpus_before_they_share_one(tmp_path):
    taken = [device.claim_all(["4", "7"], tmp_path, 1, slots=2)[0] for _ in range(4)]
    assert [index for index, _ in taken] == [0, 1, 0, 1]
    assert len({lock.lock_file for _, lock in taken}) == 4


def test_a_job_of_several_gpus_has_each_once(tmp_path):
    both = device.claim_all(["4", "7"], tmp_path, 2, slots=2)
    assert sorted(index for index, _ in both) == [0, 1]


def test_the_number_comes_from_the_environment():
    assert settings.runs_per_gpu({}) == 1
    assert settings.runs_per_gpu({"SUITE_RUNS_PER_GPU": "3"}) == 3
    for wrong in ("0", "-1", "two"):
        with pytest.raises(UserError, match=f"SUITE_RUNS_PER_GPU={wrong}: must be a whole number, 1 or more"):
            settings.runs_per_gpu({"SUITE_RUNS_PER_GPU": wrong})


def test_more_runs_than_the_memory_holds_are_refused():
    a100 = devices.named("a100")
    specs = [run.spec for run in plan.load("paper", data_root=Path("no-such-data")).runs.values()]
    small_images = next(spec for spec in specs if spec["dataset"] == "cifar10" and spec["arch"] == "rn34" and spec["train"]["batch"] == 256)
    one = limits.gpu_gigabytes(small_images)
    assert 1.5 < one < 15
    lowered = {**small_images, "train": {**small_images["train"], "compute": "bf16"}}
    assert limits.gpu_gigabytes(lowered) < one
    limits.require_room([small_images], a100, 2)
    with pytest.raises(UserError, match=r"SUITE_RUNS_PER_GPU=99: the largest Run takes about \d+ GB and NVIDIA A100 has 40; allowed: 1 to"):
        limits.require_room(specs, a100, 99)
    limits.require_room(specs, a100, 1)
    limits.require_room(specs, replace(a100, memory_gb=None), 99)
