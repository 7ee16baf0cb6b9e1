"""Ctrl-C stops a training as SIGTERM does: the state is saved, and the same command goes on. Real processes."""

import os
import signal
import subprocess
import sys

import pytest

from methods.runtime.stop import requests
from tests.methods.training.test_resume import RUNS, wait_for_state
from tests.specs import text


def test_requests_are_noted_and_handlers_given_back():
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        with requests() as stop:
            assert not stop()
            os.kill(os.getpid(), number)
            assert stop()
    assert {number: signal.getsignal(number) for number in before} == before


@pytest.mark.parametrize("way", [["methods.train"], ["methods.warm", "methods.train"]])
def test_a_keyboard_interrupt_saves_the_state(tmp_path, way):
    words = [*way, "--spec", text(RUNS["pgd"]), "--out", str(tmp_path), "--save-every", "0"]
    environ = {**os.environ, "OMP_NUM_THREADS": "1", "SUITE_DEVICE": "cpu", "SUITE_WARM": "1", "XDG_RUNTIME_DIR": ""}

    def start():
        return subprocess.Popen([sys.executable, "-m", *words], env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    process = start()
    wait_for_state(process, tmp_path, 1)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=240)
    assert process.returncode == 75, output
    assert "run the same command again" in output
    assert "Traceback" not in output
    output, _ = start().communicate(timeout=240)
    assert "resumed at epoch" in output
