"""Trainings as Snakemake starts them, by several processes."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.specs import small, text

TIMEOUT = 1200
TWO = json.dumps({"cifar10": 2})
# The last batch of an epoch has 11 images: uneven parts.
RUNS = {
    "pgd": small("binary_subnet", arch="rn18", rewrite={"data.train": 83}),
    "atta": small("binary_subnet", arch="rn18", attack={"name": "fgsm_atta"}, rewrite={"data.train": 83}),
}


def environ(**more: str) -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "SUITE_DEVICE": "cpu", **more}


def start(spec: dict, out: Path, *, gpus: str = TWO, save_every: float = 0.0) -> subprocess.Popen:
    """A training as Snakemake starts it, by two processes unless told otherwise."""
    command = [sys.executable, "-m", "methods.train", "--spec", text(spec), "--out", str(out), "--save-every", str(save_every)]
    quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen(command, env=environ(SUITE_GPUS_PER_RUN=gpus), **quiet)


def finish(spec: dict, out: Path, *, gpus: str = TWO) -> str:
    process = start(spec, out, gpus=gpus, save_every=1e9)
    output, _ = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 0, output
    return output
