"""Trains every method at toy size, alone or as one of torchrun's processes: `python -m tests.methods.distributed.worker DIR`.

In double precision, where rounding does not within a few steps turn the sign of a gradient, move a value across the kink of a ReLU or
change a mask: one process and several agree to many digits after whole trainings.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import torch
import torch.nn.functional as F

from methods.core.errors import UserError
from methods.data.load import Data, load
from methods.distributed.torchrun import join
from methods.distributed.world import World
from methods.training.loop import train
from methods.training.method import Method
from methods.training.optim import optimizer
from methods.training.resume import Resume
from tests.baselines.toy_runs import CASES, make, sample, toy
from tests.specs import small

PLAIN = {"phase": None, "precision": "fp"}
UNEVEN, EMPTY = 95, 97  # images, in batches of 24: two processes cannot share the last 23 evenly, and of the last one only one has any
SHORT = {"phase": None, "precision": "binary", "attack": {"name": "fgsm_atta"}}
CLEAN = PLAIN | {"attack": {"name": "none"}}
PER_DEVICE = toy("at", CLEAN, **{"train.bn_devices": 2})
# Large images: another stem, and perturbations that are kept in small. (The loader's random crop of them knows single precision only.)
LARGE = small("binary_subnet", dataset="imagenet100", arch="rn18", sparsity=0.9, rewrite={"train.batch": 4, "attack.aligned": True})
# In eval mode the logits of this network, in the hundreds, leave gradients that are nothing but rounding.
GENTLER = {"bcs-binary-pgd": {"attack.bn": "train"}}


def jobs() -> Iterator[tuple[str, str, dict, int]]:
    """Name, method, spec and number of training images of each training."""
    for case in CASES:
        method, variant = case.values
        yield case.id, method, toy(method, variant, **GENTLER.get(case.id, {})), UNEVEN
    yield "synchronised", "at", toy("at", CLEAN), UNEVEN
    for attack in ({"name": "pgd"}, {"name": "fgsm_atta", "step": 0.5}):
        yield f"at-{attack['name']}-empty", "at", toy("at", PLAIN | {"attack": attack}, **{"train.epochs": 2}), EMPTY
    yield "short-epochs", "binary_subnet", toy("binary_subnet", SHORT, **{"train.epochs": 3, "train.epoch_images": 41}), UNEVEN
    yield "imagenet100", "binary_subnet", LARGE, 7


@cache
def data(dataset: str, images: int) -> Data:
    return sample(images) if dataset == "cifar10" else load(dataset, source="stand-in", train=images, val=3)


def per_device_by_hand(built: Method, images: int) -> None:
    """One epoch in which each half of a batch has statistics of its own, and the running ones are those of the first half."""
    built.optimizer, norms = optimizer(built.trainables(), PER_DEVICE["train"]), built.net.norms()
    built.net.train()
    for batch in sample(images).train.batches(batch=24, seed=built.seed, epoch=0, augment=built.augment):
        built.optimizer.zero_grad()
        half = len(batch.y) // 2
        for part in (slice(half, None), slice(half)):
            before = [norm.state_dict() for norm in norms]
            before = [{name: value.clone() for name, value in state.items()} for state in before]
            loss = F.cross_entropy(built.net(batch.x[part].contiguous(memory_format=built.layout)), batch.y[part], reduction="sum")
            (loss / len(batch.y)).backward()
            if part.stop is None:
                for norm, state in zip(norms, before, strict=True):
                    norm.load_state_dict(state)
        built.optimizer.step()


def come_apart(world: World) -> str:
    """What is said of processes whose weights differ in the last bit."""
    try:
        world.check({"same": torch.ones(3), "other": torch.ones(3) * (1 + world.rank * torch.finfo().eps)})
    except UserError as error:
        return str(error)
    return ""


def main(folder: Path) -> None:
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    world, _ = join()

    def keep(name: str, **values: object) -> None:
        if world.first:
            torch.save(values, folder / f"{name}.pt")

    def trained(built: Method, images: int) -> list[dict]:
        resume = Resume(folder / "state", "x", writes=world.first)
        history = train(built, data(built.spec["dataset"], images), resume=resume, log=lambda _: None, world=world).history
        resume.clear()
        return history

    for name, method, spec, images in jobs():
        built = make(method, spec, data(spec["dataset"], images))
        history = trained(built, images)
        attack = {key: torch.as_tensor(value) for key, value in built.state()["attack"].items()}
        keep(name, history=history, tensors={**built.tensors(), **attack})
    built = make("at", PER_DEVICE, sample(UNEVEN))
    if world.size == 1:
        per_device_by_hand(built, UNEVEN)
    else:
        trained(built, UNEVEN)
    keep("per-device", tensors=built.tensors())
    keep("come-apart", message=come_apart(world))
    world.leave()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
