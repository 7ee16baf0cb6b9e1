"""What the tests of the evaluation share: a narrow network trained for a moment on the shipped sample, and a small attack."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from methods.bench.evaluate import quick_net
from methods.core import sealed
from methods.data.load import load
from methods.networks.model_file import save_model
from methods.networks.resnet import Net

EPS = "3/255"
ATTACK = {
    "version": "custom",
    "attacks": ["apgd-ce", "apgd-t", "fab-t", "square"],
    "apgd_iter": 8,
    "fab_iter": 5,
    "square_queries": 60,
    "targets": 3,
}
SPEC = {"attack": ATTACK, "eps": EPS, "seed": 3}


@functools.cache
def trained() -> Net:
    """The network; treat it as read-only."""
    return quick_net(load("cifar10", source="sample"), arch="rn18", width=0.0625, epochs=2, eps=4 / 255)


@contextmanager
def one_thread() -> Iterator[None]:
    """Networks this narrow gain nothing from threads, and lose much where the machine is busy."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def images(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    batch = next(iter(load("cifar10", source="sample").test.batches(batch=count)))
    return batch.x, batch.y


def run_folder(folder: Path) -> Path:
    """A finished run, as far as an evaluation looks at it."""
    spec = {"dataset": "cifar10", "data": {"source": "sample"}}
    folder.mkdir(parents=True)
    digest = save_model(trained(), spec, folder / "model.safetensors")
    sealed.write(folder / "train.json", {"spec": spec, "model_sha256": digest})
    return folder
