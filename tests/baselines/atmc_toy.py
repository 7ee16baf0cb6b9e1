"""ATMC on a toy network: its phases one after the other, two steps each."""

from __future__ import annotations

import torch

from baselines.atmc import RECIPE, Atmc
from methods.core.run_spec import expand, merge
from methods.data.load import Data
from methods.train import load_data
from methods.training.optim import optimizer

CPU = torch.device("cpu")


def spec_of(phase: str, **changes) -> dict:
    """The recipe's run of a phase on a toy network and 96 images; `changes` are dotted keys with __ for the dot."""
    toy = {
        "method": "atmc", "version": 2, "phase": phase, "dataset": "cifar10", "eps": "8/255", "seed": 7, "arch": "rn18", "width": 0.0625,
        "data": {"source": "sample", "train": 96, "val": 20}, "attack": {"steps": 2}, "validate": {"steps": 2},
        "train": {"epochs": 2, "batch": 24, "milestones": [1]}, "sparsity": 0.9,
    }  # fmt: skip
    spec = merge(RECIPE["run"], RECIPE["phases"][phase].get("run", {}), toy, expand({k.replace("__", "."): v for k, v in changes.items()}))
    if phase == "quantised":
        spec["options"]["quantiser"].setdefault("interval", 2)
    return spec


def images() -> Data:
    """The shipped sample."""
    torch.set_num_threads(1)
    return load_data(spec_of("dense"), None)


def step(method: Atmc, batch, number: int) -> dict[str, torch.Tensor]:
    """What the loop does with a batch."""
    draws = method.draws("step", 0, number)
    method.net.train()
    method.optimizer.zero_grad(set_to_none=True)
    loss, logs = method.loss(batch, draws)
    loss.backward()
    method.pull()
    method.optimizer.step()
    method.after_step(number, draws)
    method.push()
    return logs


def ready(method: Atmc) -> Atmc:
    method.optimizer = optimizer(method.trainables(), method.spec["train"])
    return method


def batches(data: Data, count: int = 4):
    return list(data.train.batches(batch=24, seed=7))[:count]


def copies(tensors) -> dict[str, torch.Tensor]:
    return {name: t.detach().clone() for name, t in tensors.items()}


def chain(data: Data, last: str, **changes) -> Atmc:
    """The method at the start of a phase whose predecessors have trained for two steps each."""
    parent = None
    for phase in RECIPE["phases"]:
        method = ready(Atmc(spec_of(phase, **changes), data, device=CPU, parent=parent))
        if phase == last:
            return method
        for number, batch in enumerate(batches(data, 2), 1):
            step(method, batch, number)
        parent = copies(method.tensors())
    raise AssertionError(last)
