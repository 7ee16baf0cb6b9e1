"""The start of a method of one's own: its file, a table with a row for it, and a test. What is written trains as it is."""

import re
from pathlib import Path

from methods.core.errors import UserError
from methods.core.files import write
from methods.core.method_files import GROUP, located
from workflow.suite.planning import config

METHOD = '''"""{title}: what it does, in a sentence or two.

Authors: Title, venue and year; what of the official code was followed.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from methods.data.split import Batch
from methods.training.losses import accuracy
from methods.training.method import Method

RECIPE = {{
    "version": 1,  # raise it with every change that alters trained numbers
    "name": "{title}",
    "cites": "nobody yet",
    "run": {{
        "arch": "rn18",
        "lbn": False,
        "bn_affine": True,
        "normalize": True,
        "head_bias": False,
        "precision": "fp",
        "init": {{"weights": "kaiming_normal"}},
        "attack": {{"name": "pgd", "steps": 10, "step": 0.25, "start": "uniform", "pick": "worst", "bn": "train"}},
        "validate": {{"steps": 10, "step": 0.25}},
        "train": {{
            "optimizer": "sgd",
            "lr": 0.1,
            "momentum": 0.9,
            "weight_decay": 5e-4,
            "schedule": "cosine",
            "epochs": 100,
            "batch": 128,
        }},
        "options": {{"smoothing": 0.1}},  # whatever stands here is an option of the method, which tables may set
    }},
}}


class {name}(Method):
    """Adversarial training with smoothed labels: replace it by what your method does (methods/training/method.py: what to override)."""

    def loss(self, batch: Batch, draws: torch.Generator) -> tuple[Tensor, dict[str, Tensor]]:
        _, adversarial = self.adversarial(batch, draws)
        logits = self.net(adversarial)
        return F.cross_entropy(logits, batch.y, label_smoothing=self.options["smoothing"]), {{"acc": accuracy(logits, batch.y)}}


METHOD = {name}
'''
TABLE = """# snakemake --cores 8 reports/demo/{method}.md
title: {title} beside adversarial training
metric: robust_acc
stub: [Method]
run: {{dataset: cifar10, arch: rn18}}
columns:
  - {{id: fp, head: [CIFAR10, FP], run: {{precision: fp}}}}
rows:
  - {{id: at, labels: [AT], run: {{method: at}}}}
  - {{id: mine, labels: [{title}], run: {{method: {method}}}}}
"""
TEST = '''"""{title}: what only it promises; what every method does, test_contract.py asks (and `suite check-method {method}`)."""

from __future__ import annotations

import torch

from baselines import {method}
from methods.data.load import load
from tests.specs import small


def test_the_loss_of_undecided_answers_is_the_logarithm_of_the_classes():
    data = load("cifar10", source="sample", train=24, val=8)
    method = {method}.METHOD(small("{method}"), data, device=torch.device("cpu"))
    batch = next(iter(data.train.batches(batch=12, seed=0, epoch=0, augment="none", device=torch.device("cpu"))))
    torch.nn.init.zeros_(method.net.head.weight)
    loss, _ = method.loss(batch, torch.Generator().manual_seed(0))
    assert torch.isclose(loss, torch.tensor(10.0).log())
'''


def write_method(name: str, root: Path) -> list[Path]:
    """Write the three files into the clone at `root`, none of which may be there; their paths."""
    if not (root / "pyproject.toml").is_file():
        raise UserError(
            f"{root} is an installed copy: work in a clone, or offer '{name}' from a package of your own, as an entry point of {GROUP}"
        )
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise UserError(f"'{name}' cannot be a method's name; allowed: small letters, digits and _, a letter first")
    if name in located(root) or name in config.names("tables", root / "workflow" / "config"):
        raise UserError(f"'{name}' is taken by a method or a table; choose another name")
    words = {"method": name, "title": name.replace("_", " ").title(), "name": "".join(map(str.title, name.split("_")))}
    files = {
        root / "baselines" / f"{name}.py": METHOD,
        root / "workflow" / "config" / "tables" / f"{name}.yaml": TABLE,
        root / "tests" / "baselines" / f"test_{name}.py": TEST,
    }
    if there := [path for path in files if path.exists()]:
        raise UserError(f"{there[0].relative_to(root)} is there already; move it away, or choose another name")
    for path, text in files.items():
        write(path, text.format(**words))
    return list(files)
