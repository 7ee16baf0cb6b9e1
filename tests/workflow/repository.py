"""A small repository of its own: three methods, the real configuration folder's scales, one table."""

import textwrap

import pytest

from workflow.suite.planning import config

NETWORK = {"bn_affine": False, "normalize": True, "head_bias": False}
PGD = {"name": "pgd", "steps": 10, "step": 0.25, "start": "uniform", "pick": "worst", "bn": "train"}
SGD = {"optimizer": "sgd", "lr": 0.1, "momentum": 0.9, "weight_decay": 5e-4}
OURS = {
    "version": 1,
    "name": "Ours",
    "cites": "nobody",
    "run": {
        **NETWORK,
        "arch": "rn34",
        "lbn": True,
        "precision": "binary",
        "sparsity": 0.99,
        "p": 0.1,
        "init": {"weights": "binary", "scores": "uniform", "a": 0.01},
        "attack": PGD,
        "validate": {"steps": 10, "step": 0.25},
        "train": {**SGD, "schedule": "steps", "milestones": [200, 300], "epochs": 400, "batch": 256},
        "options": {"start": 100, "every": 900},
    },
    "when": [
        [{"attack.name": "fgsm_atta"}, {"attack": {"step": 0.5}, "train.epochs": 100}],
        [{"dataset": "imagenet100"}, {"attack": {"name": "fgsm_atta", "step": 0.5}, "train": {"warmup": 5}}],
    ],
    "in_epochs": ["options.start"],
    "in_steps": ["options.every"],
}
PHASED = {
    "version": 2,
    "name": "Phased",
    "cites": "nobody",
    "run": {
        **NETWORK,
        "lbn": False,
        "attack": PGD,
        "validate": {"steps": 10, "step": 0.25},
        "sparsity": 0.99,
        "train": {**SGD, "schedule": "cosine", "epochs": 100, "batch": 128},
    },
    "phases": {
        "dense": {"ignores": ["sparsity", "p"]},
        "sparse": {"parent": "dense", "run": {"train": {"epochs": 20}}},
        "quantised": {"parent": "sparse", "run": {"train.lr": 0.01}},
    },
    "when": [[{"precision": "fp"}, {"phase": "sparse"}], [{"phase": "sparse"}, {"options": {"seen": True}}]],
}
TABLE = """
title: A table
label: tbl:small
caption: Small.
metric: robust_acc
stub: [Method]
columns:
  - {id: fp, head: [CIFAR10, FP], run: {dataset: cifar10, precision: fp, arch: rn18}, best: underline}
  - {id: binary, head: [CIFAR10, Binary], run: {dataset: cifar10, precision: binary, arch: rn18}, best: bold}
rows:
  - {id: ref, labels: [Reference], section: reference, run: {method: hydra, p: 0.1}, cells: [50.00, 40.00]}
  - {id: other, labels: [Other], section: compressed, run: {method: hydra, p: 1.0}, cells: [[30.00, underline], "-"]}
  - id: ours
    labels: [Ours]
    section: compressed
    run: {method: binary_subnet}
    when: [[{precision: binary}, {init: {a: 0.001}}]]
    skip: [[{precision: fp}, binary only]]
    notes: [[{precision: binary}, a remark]]
    cells: ["-", [45.06, bold]]
  - {id: later, labels: [Later], section: compressed, run: {method: trades}, cells: [10.00, 11.00]}
"""


def write_method(root, name, recipe, more=""):
    """A method file that must not be imported: planning only reads its text."""
    folder = root / ("methods" if name == "binary_subnet" else "baselines")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.py").write_text(f"raise RuntimeError('imported')\nRECIPE = {recipe!r}\n{more}")


@pytest.fixture
def repository(tmp_path):
    write_method(tmp_path, "binary_subnet", OURS)
    write_method(tmp_path, "hydra", PHASED)
    folder = tmp_path / "workflow" / "config"
    (folder / "tables").mkdir(parents=True)
    (folder / "tables" / "small.yaml").write_text(textwrap.dedent(TABLE))
    (folder / "scales").mkdir()
    for scale in config.names("scales"):
        (folder / "scales" / f"{scale}.yaml").write_text((config.CONFIG / "scales" / f"{scale}.yaml").read_text())
    return tmp_path
