"""A copy of the repository with a tiny scale and a small table of its own, and Snakemake started in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from workflow.suite.planning.config import ROOT

SCALE = """
comparable: false
why: a test
seeds: [1]
require_gpu: {gpu}
warm: true
rewrite:
  {{width: 0.0625, data.train: 96, data.val: 16, train.epochs: {epochs}, train.batch: 24, attack.steps: {{at_most: 2}}, validate.steps: 2}}
data: {{cifar10: sample, cifar100: stand-in, imagenet100: stand-in}}
evaluate:
  attack: {{version: custom, attacks: [apgd-ce, square], apgd_iter: 2, square_queries: 5}}
  examples: 16
  seed: 0
  block: 8
  shards: {shards}
"""
# One training on its own, and a chain of three.
TABLE = """
title: A small table
label: tbl:few
caption: Small.
metric: robust_acc
stub: [Method]
run: {dataset: cifar10, arch: rn18, precision: fp, lbn: false, sparsity: 0.99}
columns:
  - {id: fp, head: [RN18, FP], run: {}, best: underline}
rows:
  - {id: rst, labels: [RST], section: compressed, run: {method: rst, p: 1.0}, cells: [30.00]}
  - {id: hydra, labels: [HYDRA], section: compressed, run: {method: hydra, p: 0.1}, cells: [40.00]}
"""
SETTINGS = ["--config", "scale=tiny", "allow_cpu=true", "data_root=none"]


def copy(folder: Path, *, gpu: bool = False, epochs: int = 2, shards: int = 1) -> Path:
    """The repository as a user has it, with scale `tiny` and table `few`."""
    for name in ("workflow", "methods", "baselines", "snakemake_logger_plugin_calm"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("Snakefile", "environment.yml"):
        shutil.copy(ROOT / name, folder)
    (folder / "profiles").symlink_to("workflow/profiles")
    (folder / "workflow/config/scales/tiny.yaml").write_text(SCALE.format(gpu=str(gpu).lower(), epochs=epochs, shards=shards))
    (folder / "workflow/config/tables/few.yaml").write_text(TABLE)
    return folder


def snakemake(*words: str, tree: Path, log: Path, environ: dict[str, str] | None = None) -> subprocess.Popen:
    """Snakemake of a copy, started; all it says goes to the log."""
    command = [sys.executable, "-m", "snakemake", *words, *SETTINGS]
    environ = {**(os.environ if environ is None else environ), "OMP_NUM_THREADS": "1"}
    with log.open("w") as stream:
        return subprocess.Popen(command, cwd=tree, env=environ, stdout=stream, stderr=subprocess.STDOUT)
