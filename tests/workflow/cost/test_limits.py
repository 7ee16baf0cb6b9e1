"""Limits of jobs: minutes, memory and GPUs that a run asks for."""

from dataclasses import replace

import pytest

from methods.core.errors import UserError
from tests.workflow.cost.plans import planned
from workflow.suite.cost import devices, limits
from workflow.suite.planning import config


def test_limits_grow_with_the_try_and_end_at_the_longest():
    suite, paper, device = config.load_suite(), planned("paper"), devices.named("a100")
    run = paper.runs[paper.final_runs("main_comparison")[0]]
    first, second = (limits.train_minutes(run, device, suite, attempt) for attempt in (1, 2))
    hours = device.training(run.spec) / 3600
    assert first >= 60 * min(hours, 24)
    assert first <= second <= 24 * 60
    assert limits.train_minutes(run, device, replace(suite, longest_hours=0.5), 1) == 30
    slow = replace(device, rates={"fp32": replace(device.rates["fp32"], flops=1000 * device.rates["fp32"].flops)})
    assert limits.train_minutes(run, slow, suite, 1) == 24 * 60
    chosen = paper.evaluations[run.name]
    whole = limits.evaluate_minutes(run, replace(chosen, shards=1), slow, replace(suite, longest_hours=1e9), 1)
    part = limits.evaluate_minutes(run, replace(chosen, shards=4), slow, replace(suite, longest_hours=1e9), 1)
    assert whole / 4 < part < whole / 3.9
    for scale in ("paper", "demo"):
        run = next(iter(planned(scale).runs.values()))
        first = limits.megabytes(run.spec, planned(scale).scale, 1, images=256)
        assert 1500 < first < 32000
        assert limits.megabytes(run.spec, planned(scale).scale, 2, images=256) == 2 * first


def test_a_run_asks_for_its_gpus():
    settings = {"scale": "paper", "data_root": "data", "allow_cpu": False}
    suite, paper = config.load_suite({**settings, "gpus_per_run": {"imagenet100": "4"}}), planned("paper")  # as --config hands it over
    runs = {name: next(run for run in paper.runs.values() if run.spec["dataset"] == name) for name in ("cifar10", "imagenet100")}
    assert [limits.processes(run, suite, paper.scale) for run in runs.values()] == [1, 4]
    assert limits.processes(runs["imagenet100"], replace(suite, allow_cpu=True), paper.scale) == 1
    assert limits.processes(runs["imagenet100"], suite, planned("demo").scale) == 1
    spec = runs["cifar10"].spec
    per_device = replace(runs["cifar10"], spec={**spec, "train": {**spec["train"], "bn_devices": 2}})
    assert limits.processes(per_device, suite, planned("demo").scale) == 2
    with pytest.raises(UserError, match="gpus_per_run"):
        config.load_suite({**settings, "gpus_per_run": {"imagenet": 4}})


def test_limits_are_for_the_device_that_runs():
    suite = config.load_suite()
    assert limits.device(suite, planned("paper").scale) == devices.named(suite.gpu)
    for settings, scale in ((suite, "demo"), (replace(suite, allow_cpu=True), "paper")):
        assert limits.device(settings, planned(scale).scale) == devices.named("cpu")
