"""A training that is stopped on one way in goes on when it is started on another. Real processes."""

import os
import signal
import subprocess
import sys

import pytest

from tests.methods.training.test_resume import RUNS, results, wait_for_state
from tests.specs import text

TORCHRUN = ["torch.distributed.run", "--standalone", "--nproc-per-node"]
WAYS = {
    "command": ["methods.train"],
    "snakemake": ["methods.warm", "methods.train"],
    "torchrun": [*TORCHRUN, "1", "-m", "methods.train"],
    "two processes": [*TORCHRUN, "2", "-m", "methods.train"],
}


def start(way, out, *, save_every):
    words = [*WAYS[way], "--spec", text(RUNS["pgd"]), "--out", str(out), "--save-every", str(save_every)]
    environ = {**os.environ, "OMP_NUM_THREADS": "1", "SUITE_DEVICE": "cpu"}
    return subprocess.Popen([sys.executable, "-m", *words], env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finish(way, out):
    process = start(way, out, save_every=1e9)
    output, _ = process.communicate(timeout=600)
    assert process.returncode == 0, output
    return output


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    out = tmp_path_factory.mktemp("undisturbed")
    finish("command", out)
    return results(out)


@pytest.mark.parametrize(
    ("first", "second"), [("snakemake", "command"), ("command", "snakemake"), ("snakemake", "torchrun"), ("torchrun", "command")]
)
def test_a_state_is_taken_up_on_another_way(undisturbed, tmp_path, first, second):
    process = start(first, tmp_path, save_every=0)
    wait_for_state(process, tmp_path, 2)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=600)
    assert process.returncode != 0
    assert not (tmp_path / "train.json").exists()
    assert "resumed at epoch" in finish(second, tmp_path)
    assert results(tmp_path) == undisturbed


def test_several_processes_go_on_from_what_snakemake_started(tmp_path):
    process = start("snakemake", tmp_path, save_every=0)
    wait_for_state(process, tmp_path, 2)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=600)
    assert "resumed at epoch" in finish("two processes", tmp_path)
