"""The training loop: epochs, validation, selection of the best epoch, and a state that can be resumed at any step.

All randomness of a step is a function of (seed, epoch, step), so a resumed run needs no generator state and repeats, on the same
device, exactly what the undisturbed run does.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from methods.attacks.pgd import mode, pgd
from methods.core import paths
from methods.core.errors import UserError
from methods.data.load import Data
from methods.data.split import Split
from methods.distributed.synced_norm import synchronise
from methods.distributed.world import ALONE, World
from methods.networks.resnet import Net
from methods.runtime.heartbeat import Heartbeat
from methods.runtime.stopwatch import Stopwatch
from methods.training.method import Method
from methods.training.optim import learning_rate, optimizer
from methods.training.resume import Resume


class Stopped(Exception):
    """Training was asked to stop and has saved its state."""


@dataclass(kw_only=True)
class Outcome:
    """What training leaves behind."""

    history: list[dict[str, float]] = field(default_factory=list)
    best: dict[str, Any] = field(default_factory=dict)  # epoch, robust, tensors, report
    handed_over: dict[str, Tensor] = field(default_factory=dict)


def copied(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: t.detach().to("cpu", copy=True) for name, t in tensors.items()}


@torch.no_grad()
def validate(method: Method, net: Net, split: Split, epoch: int, world: World = ALONE) -> dict[str, float]:
    """Clean and PGD accuracy and adversarial loss of a network on a split, in eval mode."""
    settings, eps, totals, size = method.spec["validate"], method.eps, torch.zeros(3, device=method.device), method.spec["train"]["batch"]
    with mode(net, training=False):
        for i, batch in enumerate(split.batches(batch=size, device=method.device, share=world.share)):
            x = batch.x.contiguous(memory_format=method.layout)
            draws = world.draws(method.draws("validate", epoch, i, device=method.device), world.part(min(size, len(split) - i * size)))
            with torch.enable_grad():
                adv = pgd(
                    net,
                    x,
                    batch.y,
                    eps=eps,
                    alpha=settings["step"] * eps,
                    steps=settings["steps"],
                    generator=draws,
                    start="uniform",
                    pick="worst",
                )
            clean = net(x)
            logits = net(adv) if eps else clean
            right = [(out.argmax(1) == batch.y).sum().float() for out in (clean, logits)]
            totals += torch.stack([*right, F.cross_entropy(logits, batch.y, reduction="sum")])
    clean_acc, robust_acc, loss = (world.total(totals) / len(split)).tolist()
    return {"val_clean": clean_acc, "val_robust": robust_acc, "val_loss": loss}


def share_out(method: Method, data: Data, world: World) -> None:
    """Prepare a method for being trained by several processes: the same start, and batch norms over the whole batch or over each part."""
    settings = method.spec["train"]
    devices, batch = settings.get("bn_devices", world.size), min(settings["batch"], len(data.train))
    smallest = len(data.train) % batch or batch
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
    settings, trainables, watch = method.spec["train"], method.trainables(), watch or Stopwatch(method.device)
    say = log if world.first else lambda _: None
    if not trainables:
        record = validate(method, method.validated(), data.val, 0, world)
        tensors = copied(method.validated().state_dict())
        return Outcome(best={"epoch": None, "robust": record["val_robust"], "tensors": tensors, "report": method.report()})
    method.optimizer = optimizer(trainables, settings)
    share_out(method, data, world)
    outcome, first_epoch, first_step, sums = Outcome(), 0, 0, {}
    if (state := resume.load()) is not None:
        first_epoch, first_step, sums = state["epoch"], state["step"], {k: v.to(method.device) for k, v in state["sums"].items()}
        outcome = Outcome(history=state["history"], best=state["best"], handed_over=state["handed_over"])
        method.load_state(state["method"])
        watch.resume(state.get("spent"))
        say(f"resumed at epoch {first_epoch}, step {first_step}")
    world.check({"the place to resume at": torch.tensor([first_epoch, first_step])})
    saved_at = time.monotonic()

    def save(epoch: int, step: int) -> None:
        nonlocal saved_at
        here = {"epoch": epoch, "step": step, "sums": sums, "history": outcome.history, "best": outcome.best}
        resume.save(here | {"handed_over": outcome.handed_over, "method": method.state(), "spent": watch.read()})
        saved_at = time.monotonic()

    steps, norms = math.ceil(len(data.train) / settings["batch"]), method.net.norms()
    heart = Heartbeat(
        resume.folder / paths.PROGRESS if world.first else None,
        epochs=settings["epochs"],
        steps=steps,
        done=first_epoch * steps + first_step,
        stream=sys.stderr if world.first else None,
    )
    for epoch in range(first_epoch, settings["epochs"]):
        started = time.monotonic()
        for group in method.optimizer.param_groups:
            group["lr"] = learning_rate(settings, epoch)
        method.net.train()
        batches = data.train.batches(
            batch=settings["batch"],
            seed=method.seed,
            epoch=epoch,
            augment=method.augment,
            device=method.device,
            start=first_step,
            share=world.share,
        )
        for step, batch in enumerate(batches, first_step):
            part = world.part(min(settings["batch"], len(data.train) - step * settings["batch"]))
            draws = world.draws(method.draws("step", epoch, step, device=method.device), part)
            batch = batch._replace(x=batch.x.contiguous(memory_format=method.layout))
            method.optimizer.zero_grad(set_to_none=True)
            loss, logs = method.loss(batch, draws)
            world.weigh(loss, part).backward()
            world.add_gradients(method.parameters())
            if "bn_devices" in settings:  # as in nn.DataParallel, whose running statistics are those of the first device
                world.copy_from_first(statistic for norm in norms for statistic in (norm.running_mean, norm.running_var))
            method.pull()
            method.optimizer.step()
            method.after_step(epoch * steps + step + 1, draws)
            method.push()
            for name, value in world.add({"loss": loss, **logs}, len(batch.y)).items():
                sums[name] = sums.get(name, 0) + value
            heart.beat(epoch * steps + step + 1)
            stopping, due = world.any(stop(), world.first and time.monotonic() - saved_at >= save_every)
            if stopping or due:
                save(epoch, step + 1)
                if stopping:
                    raise Stopped(f"stopped at epoch {epoch}, step {step + 1}; run the same command again to go on")
        record = {"epoch": epoch, "lr": learning_rate(settings, epoch)}
        record |= {f"train_{name}": (total / len(data.train)).item() for name, total in sums.items()}
        if not math.isfinite(record["train_loss"]):
            raise UserError(f"training diverged: the loss of epoch {epoch} is {record['train_loss']}; lower 'train.lr'")
        world.check(method.decided())
        record |= validate(method, method.validated(), data.val, epoch, world)
        method.after_epoch(record)
        outcome.history.append(record)
        if not outcome.best or record["val_robust"] > outcome.best["robust"]:  # strictly: of equal epochs the first
            tensors = copied(method.validated().state_dict())
            outcome.best = {"epoch": epoch, "robust": record["val_robust"], "tensors": tensors, "report": method.report()}
            if method.hands_over == "best":
                outcome.handed_over = copied(method.tensors())
        sums, first_step = {}, 0
        heart.clear()
        say(
            f"epoch {epoch + 1}/{settings['epochs']}  loss {record['train_loss']:.4f}  validation clean {record['val_clean']:.4f}"
            f"  robust {record['val_robust']:.4f}  {time.monotonic() - started:.1f} s"
        )
    if method.hands_over == "last":
        outcome.handed_over = copied(method.tensors())
    return outcome
