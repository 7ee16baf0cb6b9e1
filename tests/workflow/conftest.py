"""A small repository to plan, evaluations as the merge step writes them, and Snakemake in a folder of its own."""

import os
import subprocess
import sys

import pytest

from methods.core import paths, sealed
from tests.workflow.repository import repository  # noqa: F401
from workflow.suite.planning.config import ROOT


@pytest.fixture
def finish(tmp_path):
    """finish(plan, run, n_clean=..., n_robust=..., n=...) writes the merged evaluation of a Run; returns the folder of results."""
    folder = tmp_path / "work"
    folder.mkdir()

    def write(plan, run, *, n_clean, n_robust=None, n=64, warnings=()):
        path = folder / paths.evaluation(run, plan.evaluations[run].id)
        path.parent.mkdir(parents=True, exist_ok=True)
        robust = {"robust_acc": None, "n_robust": None} if n_robust is None else {"robust_acc": n_robust / n, "n_robust": n_robust}
        result = {"clean_acc": n_clean / n, "n": n, "n_clean": n_clean, "data": "Some images", "warnings": list(warnings), "after": {}}
        sealed.write(path, {**result, **robust})
        return folder

    write.folder = folder
    return write


@pytest.fixture
def snakemake(tmp_path):
    """snakemake(words...) runs in an empty working directory; returns (exit code, all output)."""

    def run(*words):
        command = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), "--directory", str(tmp_path), "--cores", "2"]
        done = subprocess.run([*command, *words], cwd=ROOT, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
        return done.returncode, done.stdout + done.stderr

    run.folder = tmp_path
    return run
