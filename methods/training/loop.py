"""The training loop: epochs, validation, selection of the best epoch, and a state that can be resumed at any step.

All randomness of a step is a function of (seed, epoch, step), so a resumed run needs no generator state and repeats, on the same
device, exactly what the undisturbed run does.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch

from methods.core import paths
from methods.core.errors import UserError
from methods.data.load import Data
from methods.data.split import Batch
from methods.distributed.synced_norm import synchronise
from methods.distributed.world import ALONE, World
from methods.runtime.heartbeat import Heartbeat
from methods.runtime.stopwatch import Stopwatch
from methods.sparse.choice import DENSE, choose, insisted
from methods.training.course import Course, Stopped
from methods.training.method import Method
from methods.training.optim import learning_rate, optimizer
from methods.training.outcome import Outcome, deployable
from methods.training.precision import compute_of
from methods.training.resume import Resume
from methods.training.step import step
from methods.training.validation import validate


def train(
    method: Method,
    data: Data,
    *,
    resume: Resume,
    stop: Callable[[], bool] = lambda: False,
    save_every: float = 300.0,
    log: Callable[[str], None] = print,
    watch: Stopwatch | None = None,
    world: World = ALONE,
) -> Outcome:
    """Train to the end, or save the state and raise Stopped when `stop()` turns true. A network with nothing to train is validated."""
    say = log if world.first else lambda _: None
    dense = world.size > 1 or compute_of(method.spec["train"]) != "fp32"
    method.engine = insisted() or (DENSE if dense else choose(method.net, images_of(method), side=data.shape[-1]))
    if not method.trainables():
        robust = validate(method, method.validated(), data.val, 0, world)["val_robust"]
        return Outcome(best=deployable(method, epoch=None, robust=robust))
    method.optimizer = optimizer(method.trainables(), method.spec["train"])
    share_out(method, data, world)
    course = Course(method, resume, watch or Stopwatch(method.device), say)
    world.check({"the place to resume at": torch.tensor([course.epoch, course.step])})
    heart = heartbeat(course, resume, world)
    for epoch in range(course.epoch, method.spec["train"]["epochs"]):
        started = time.monotonic()
        run_epoch(course, data, heart, world, stop=stop, save_every=save_every)
        record = course.close_epoch()
        world.check(method.decided())
        record |= validate(method, method.validated(), data.val, epoch, world)
        method.after_epoch(record)
        course.outcome.add(record, method)
        heart.clear()
        say(summary(record, method, time.monotonic() - started))
    course.outcome.end(method)
    return course.outcome


def images_of(method: Method) -> float:
    """How many images go forward through the network in a training, a gradient counting as another: what a choice of engine goes by."""
    train = method.spec["train"]
    return train["epochs"] * method.epoch_images * (2 * method.spec["attack"].get("steps", 1) + 4)


def run_epoch(course: Course, data: Data, heart: Heartbeat, world: World, *, stop: Callable[[], bool], save_every: float) -> None:
    """The steps of the epoch at work from the next one on, saving the state when it is due or a stop is asked for."""
    method, epoch = course.method, course.epoch
    for group in method.optimizer.param_groups:
        group["lr"] = learning_rate(method.spec["train"], epoch)
    for batch in epoch_batches(method, data, epoch, course.step, world):
        course.count(step(method, batch, epoch, course.step, world))
        heart.beat(course.done)
        stopping, due = world.any(stop(), world.first and time.monotonic() - course.saved_at >= save_every)
        if stopping or due:
            course.save()
        if stopping:
            raise Stopped(f"stopped at epoch {epoch}, step {course.step}; run the same command again to go on")


def epoch_batches(method: Method, data: Data, epoch: int, start: int, world: World) -> Iterator[Batch]:
    """This process's part of the batches of an epoch, shuffled and augmented, from number `start` on."""
    return data.train.batches(
        batch=method.spec["train"]["batch"],
        seed=method.seed,
        epoch=epoch,
        images=method.epoch_images,
        augment=method.augment,
        device=method.device,
        start=start,
        share=world.share,
    )


def heartbeat(course: Course, resume: Resume, world: World) -> Heartbeat:
    """The sign of life of the first process; the others keep to themselves."""
    return Heartbeat(
        resume.folder / paths.PROGRESS if world.first else None,
        epochs=course.method.spec["train"]["epochs"],
        steps=course.method.epoch_steps,
        done=course.done,
        stream=sys.stderr if world.first else None,
    )


def summary(record: dict[str, Any], method: Method, seconds: float) -> str:
    """One line about an epoch."""
    return (
        f"epoch {record['epoch'] + 1}/{method.spec['train']['epochs']}  loss {record['train_loss']:.4f}"
        f"  validation clean {record['val_clean']:.4f}  robust {record['val_robust']:.4f}  {seconds:.1f} s"
    )


def share_out(method: Method, data: Data, world: World) -> None:
    """Prepare a method for being trained by several processes: the same start, and batch norms over the whole batch or over each part."""
    settings = method.spec["train"]
    devices, batch = settings.get("bn_devices", world.size), min(settings["batch"], method.epoch_images)
    smallest = method.epoch_images % batch or batch
    if devices != world.size:
        raise UserError(
            f"'train.bn_devices: {devices}' means statistics per device, but {world.size} process(es) train;"
            f" start it with `torchrun --standalone --nproc-per-node {devices} -m methods.train ...`"
        )
    if world.size == 1:
        return
    if "bn_devices" not in settings:
        synchronise(method.net.norms())
    elif smallest < 2 * devices:
        raise UserError(
            f"'train.bn_devices: {devices}': the smallest batch of an epoch has {smallest} images, and each device needs two to have a"
            " variance; change 'train.batch' or leave 'train.bn_devices' out"
        )
    world.copy_from_first(method.tensors().values())
    method.push()
