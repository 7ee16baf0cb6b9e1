"""Whole trainings on the engine: the same to rounding as densely, resumed bit for bit, told by the manifest. Real processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.specs import small, text

RUN = small("binary_subnet", arch="rn18")


def start(out: Path, engine: str, *, threads: int = 1, save_every: float = 1e9) -> subprocess.Popen:
    command = [sys.executable, "-m", "methods.train", "--spec", text(RUN), "--out", str(out), "--save-every", str(save_every)]
    environ = {**os.environ, "OMP_NUM_THREADS": str(threads), "SUITE_DEVICE": "cpu", "SUITE_ENGINE": engine}
    return subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finish(out: Path, engine: str, **settings: int) -> str:
    process = start(out, engine, **settings)
    output, _ = process.communicate(timeout=240)
    assert process.returncode == 0, output
    return output


def results(out: Path) -> tuple[bytes, str]:
    return (out / "model.safetensors").read_bytes(), (out / "history.jsonl").read_text()


@pytest.fixture(scope="module")
def sparse(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("sparse")
    finish(out, "sparse")
    return out


def test_the_first_steps_are_those_of_a_dense_training(sparse, tmp_path):
    """The first epoch agrees; later ones need not, since a mask that differs in one place sets them apart."""
    finish(tmp_path, "dense")
    ours, theirs = (json.loads((out / "history.jsonl").read_text().splitlines()[0]) for out in (sparse, tmp_path))
    assert ours["train_loss"] == pytest.approx(theirs["train_loss"], rel=0.05)
    assert (sparse / "model.safetensors").read_bytes() != (tmp_path / "model.safetensors").read_bytes()


def test_the_manifest_names_the_engine(sparse):
    assert json.loads((sparse / "train.json").read_text())["provenance"]["engine"] == "sparse"


def killed(out: Path, engine: str) -> None:
    """A training that was killed after it had saved its state."""
    process = start(out, engine, save_every=0)
    while not (out / "state" / "state.old").exists():
        assert process.poll() is None, process.stdout.read()
        time.sleep(0.002)
    process.kill()
    process.wait()


def test_a_killed_run_ends_with_the_bytes_of_an_undisturbed_one(sparse, tmp_path):
    """Also where nobody insists any more: the state remembers its engine."""
    killed(tmp_path, "sparse")
    output = finish(tmp_path, "auto")
    assert "resumed at epoch" in output
    assert results(tmp_path) == results(sparse)


def test_another_engine_says_that_it_goes_on(tmp_path):
    killed(tmp_path, "sparse")
    assert "the dense engine goes on with what the sparse one began" in finish(tmp_path, "dense")


def test_two_threads_end_with_the_same_bytes(sparse, tmp_path):
    """The engine's bits do not depend on threads; torch's own sums of losses are small enough not to either."""
    finish(tmp_path, "sparse", threads=2)
    assert results(tmp_path) == results(sparse)
