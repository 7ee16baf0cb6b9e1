"""The surroundings of jobs: environment variables, and scripts that fail with one line."""

import dataclasses
from pathlib import Path
from types import SimpleNamespace

import pytest

from methods.core.errors import UserError
from workflow.suite.jobs import environment, script
from workflow.suite.planning import config

SUITE = {"scale": "demo", "data_root": "none", "allow_cpu": False}


def variables(scale, present=None, **suite):
    chosen = config.load_suite({**SUITE, **suite})
    python = Path("/opt/python/bin/python")
    return environment.of_jobs(chosen, config.load_scale(scale), root=Path("/repo"), python=python, present=present or {})


def test_jobs_find_code_python_and_data():
    environ = variables("lite", {"PATH": "/bin", "PYTHONPATH": "/mine"}, data_root="/images")
    assert environ == {"PYTHONPATH": "/repo:/mine", "PATH": "/opt/python/bin:/bin", "SUITE_DATA_ROOT": "/images"}
    assert variables("lite")["PYTHONPATH"] == "/repo"


def test_a_scale_that_needs_a_gpu_refuses_the_cpu_unless_allowed():
    assert variables("paper")["SUITE_DEVICE"] == "cuda"
    assert "SUITE_DEVICE" not in variables("paper", allow_cpu=True)
    assert "SUITE_DEVICE" not in variables("paper", allow_cpu="true"), "as --config hands it over"
    assert "SUITE_DEVICE" not in variables("demo")


def test_several_gpus_train_a_run_only_where_gpus_are_a_must():
    wanted = {"imagenet100": 4}
    assert variables("paper", gpus_per_run=wanted)["SUITE_GPUS_PER_RUN"] == '{"imagenet100": 4}'
    assert "SUITE_GPUS_PER_RUN" not in variables("paper", allow_cpu=True, gpus_per_run=wanted)
    assert "SUITE_GPUS_PER_RUN" not in variables("demo", gpus_per_run=wanted)


def test_bfloat16_is_imitated_where_the_suite_may():
    assert variables("lite", imitate_bf16="true")["SUITE_IMITATE_BF16"] == "1", "as --config hands it over"
    assert "SUITE_IMITATE_BF16" not in variables("lite")


@pytest.mark.parametrize(("lowered", "about"), [(7, "7 of the trainings ahead: "), (1, "")])
def test_a_format_that_no_job_could_compute_in_is_refused_before_all_of_them(tmp_path, lowered, about):
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\necho "error: asked for $*" >&2\nexit 2\n')
    python.chmod(0o755)
    with pytest.raises(UserError, match=f"^{about}asked for -m methods.formats bf16$"):
        environment.check({}, python=python, gpu=False, lowered=lowered)
    environment.check({}, python=python, gpu=False, lowered=0)


def test_only_short_jobs_start_warm():
    warm = dataclasses.replace(config.load_scale("lite"), warm=True)
    suite = config.load_suite(SUITE)
    assert environment.of_jobs(suite, warm, root=Path("r"), python=Path("p"), present={})["SUITE_WARM"] == "1"
    assert "SUITE_WARM" not in variables("lite")


def test_a_script_logs_what_it_made(tmp_path):
    call = SimpleNamespace(log=[str(tmp_path / "log")], config=SUITE)
    script.run(call, lambda plan: f"{plan.scale.name} {len(plan.tables)}")
    assert (tmp_path / "log").read_text() == "demo 9\n"


def test_a_script_fails_with_one_line(tmp_path):
    def damaged(_):
        raise UserError("x.json: is damaged")

    with pytest.raises(SystemExit, match="error: x.json: is damaged"):
        script.run(SimpleNamespace(log=[str(tmp_path / "log")], config=SUITE), damaged)
    assert (tmp_path / "log").read_text() == "error: x.json: is damaged\n"
