"""Devices: from work to seconds, and where their figures come from."""

from dataclasses import replace

import pytest

from methods.core.errors import UserError
from tests.workflow.cost.plans import planned
from workflow.suite.cost import devices, work
from workflow.suite.cost.devices import Device, Rates
from workflow.suite.cost.work import Work
from workflow.suite.planning import config, schema


def test_the_fit_finds_the_rates_behind_times():
    rates = {"flops": 2e-11, "elements": 0.0, "calls": 1e-4}
    works = [Work(flops=1e9, elements=3e6, calls=100), Work(flops=5e10, elements=2e7, calls=70), Work(flops=2e8, elements=1e6, calls=300)]
    seconds = [sum(rate * getattr(item, part) for part, rate in rates.items()) for item in works]
    assert devices.fit(works, seconds) == pytest.approx(tuple(rates.values()), rel=1e-6, abs=1e-18)
    assert min(devices.fit(works, [1.0, 0.1, 3.0])) >= 0


def test_a_file_that_is_no_probe_is_refused(tmp_path):
    (tmp_path / "p.json").write_text('{"points": []}')
    with pytest.raises(UserError, match="is not the result of a probe"):
        devices.probed(tmp_path / "p.json")


def test_work_takes_time_in_each_of_its_parts():
    rates = Rates(flops=1.0, elements=10.0, calls=100.0)
    device = Device(title="x", rates={"fp32": rates, "bf16": replace(rates, flops=0.5)}, startup=1000.0)
    done = Work(flops=1, elements=2, calls=3) + Work(flops=1)
    assert device.seconds(done) == 2 + 20 + 300
    assert device.seconds(done, "bf16") == 1 + 20 + 300
    with pytest.raises(UserError, match="x: has no figures for 'train.compute: fp8'; it has: fp32, bf16"):
        device.seconds(done, "fp8")


def test_photographs_are_waited_for_where_reading_is_slower():
    device = Device(title="x", rates={"fp32": Rates(flops=1.0)}, photographs=10.0)
    assert device.seconds(Work(flops=5, photographs=40)) == 5
    assert device.seconds(Work(flops=5, photographs=60)) == 6
    paper = planned("paper")
    large = next(run.spec for run in paper.runs.values() if run.spec["dataset"] == "imagenet100")
    small_images = next(run.spec for run in paper.runs.values() if run.spec["dataset"] == "cifar10")
    assert work.training(large).photographs == 124156 * large["train"]["epochs"]
    assert work.training(small_images).photographs == 0
    one_core = replace(devices.named("a100"), photographs=devices.PHOTOGRAPHS)
    assert one_core.waits_for_photographs(large)
    assert one_core.training(large) >= 124156 * large["train"]["epochs"] / devices.PHOTOGRAPHS


def test_steps_are_priced_in_the_format_of_the_run_and_validation_in_single_precision():
    spec = next(run.spec for run in planned("paper").runs.values() if run.spec["dataset"] == "cifar10" and run.spec["eps"] != 0)
    lowered = {**spec, "train": {**spec["train"], "compute": "bf16"}}
    parts = work.training_by_format(lowered)
    assert set(parts) == {"bf16", "fp32"}
    assert parts["bf16"].flops + parts["fp32"].flops == pytest.approx(work.training(spec).flops)
    assert parts["fp32"].flops < 0.05 * parts["bf16"].flops  # two images of a hundred are validated on
    device = devices.named("a100")
    assert 2 < device.training(spec) / device.training(lowered) < 2.7
    with pytest.raises(UserError, match="NVIDIA V100: has no figures for 'train.compute: bf16'"):
        devices.named("v100").training(lowered)


def test_every_named_device_says_where_its_figures_come_from():
    for name in schema.read_yaml(config.CONFIG / "devices.yaml"):
        for rates in devices.named(name).rates.values():
            assert "TFLOP/s (" in rates.source
