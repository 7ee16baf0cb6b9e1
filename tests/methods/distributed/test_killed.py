"""Whatever is killed on the way, several processes end in the same result. Real signals."""

import json
import os
import signal
import time
from pathlib import Path

import pytest

from tests.methods.distributed.launched import RUNS, TIMEOUT, finish, start
from tests.methods.training.test_resume import results, wait_for_state


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> dict[str, tuple[bytes, str]]:
    outcomes = {}
    for name, spec in RUNS.items():
        out = tmp_path_factory.mktemp(name)
        finish(spec, out)
        assert not (out / "state").exists(), "a finished run leaves no training state"
        outcomes[name] = results(out)
    return outcomes


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
    while not (told := progress(tmp_path)):
        time.sleep(0.01)
    os.kill(told["pid"], signal.SIGKILL)
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
