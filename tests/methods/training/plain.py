"""A whole training as one would write it down from the description: no resuming, no processes, no files.

It asks a method only for what is the method's own (loss, gradients to what is trained, its work after a step and an epoch, the network it
deploys); schedule, optimiser, validation, selection and hand-over are written here once more.
"""

from __future__ import annotations

from math import cos, pi

import torch
import torch.nn.functional as F
from torch import Tensor

from methods.data.load import Data
from methods.training.method import Method
from methods.training.optim import SGDW


def rate(settings: dict, epoch: int) -> float:
    """Warm-up from lr / warmup to lr; then a cosine to zero over the epochs that are left, or a tenth from each milestone on."""
    lr, warm, epochs = settings["lr"], settings.get("warmup", 0), settings["epochs"]
    if epoch < warm:
        return lr * (epoch + 1) / warm
    if settings["schedule"] == "steps":
        return lr * 0.1 ** len([milestone for milestone in settings["milestones"] if milestone <= epoch])
    place = (epoch - warm) / (epochs - warm) if settings["schedule"] == "cosine" else (epoch - 1) / epochs
    return lr * 0.5 * (1 + cos(pi * place))


def optimizer(settings: dict, trained: list[Tensor]) -> torch.optim.Optimizer:
    kinds = {"sgd": torch.optim.SGD, "sgdw": SGDW, "adam": torch.optim.Adam}
    momentum = {} if settings["optimizer"] == "adam" else {"momentum": settings["momentum"]}
    return kinds[settings["optimizer"]](trained, lr=settings["lr"], weight_decay=settings["weight_decay"], **momentum)


def attacked_point(net, x: Tensor, y: Tensor, settings: dict, eps: float, draws: torch.Generator) -> Tensor:
    """PGD from a uniform start; of the points at which the loss was looked at, the first of highest loss. Or else without a start and
    the last point."""
    alpha, steps = settings["step"] * eps, settings["steps"]
    noise = (2 * torch.rand(x.shape, generator=draws).contiguous(memory_format=torch.channels_last) - 1) * eps
    point = worst = x if settings.get("start") == "none" else (x + noise).clamp(0, 1)
    highest = torch.zeros(len(x))
    for _ in range(steps):
        point = point.detach().requires_grad_()
        losses = F.cross_entropy(net(point), y, reduction="none")
        (gradient,) = torch.autograd.grad(losses.mean(), point)
        higher = losses.detach() > highest
        worst = torch.where(higher.view(-1, 1, 1, 1), point.detach(), worst)
        highest = torch.where(higher, losses.detach(), highest)
        point = (x + (point.detach() + alpha * gradient.sign() - x).clamp(-eps, eps)).clamp(0, 1)
    return point if settings.get("pick") == "last" else worst


def validation(method: Method, net, data: Data, epoch: int) -> dict[str, float]:
    """In eval mode, with a draw of its own for each epoch and batch."""
    settings, totals, size = method.spec["validate"], torch.zeros(3), method.spec["train"]["batch"]
    net.eval()
    for number, (x, y, _) in enumerate(data.val.batches(batch=size)):
        x = x.contiguous(memory_format=torch.channels_last)
        adversarial = attacked_point(net, x, y, settings, method.eps, method.draws("validate", epoch, number))
        with torch.no_grad():
            clean, attacked = net(x), net(adversarial)
        right = [(clean.argmax(1) == y).sum(), (attacked.argmax(1) == y).sum()]
        totals += torch.stack([*right, F.cross_entropy(attacked, y, reduction="sum")])
    net.train()
    return dict(zip(("val_clean", "val_robust", "val_loss"), (totals / len(data.val)).tolist(), strict=True))


def training(method: Method, data: Data, hands_over: str | None) -> dict:
    """history, epoch and tensors and report of the best epoch, and the state that is handed over."""
    settings, history, best, handed_over, steps = method.spec["train"], [], {}, {}, 0
    method.optimizer = optimizer(settings, method.trainables())
    for epoch in range(settings["epochs"]):
        for group in method.optimizer.param_groups:
            group["lr"] = rate(settings, epoch)
        sums: dict[str, Tensor] = {}
        for number, batch in enumerate(data.train.batches(batch=settings["batch"], seed=method.seed, epoch=epoch, augment=method.augment)):
            draws = method.draws("step", epoch, number)
            batch = batch._replace(x=batch.x.contiguous(memory_format=torch.channels_last))
            method.optimizer.zero_grad()
            loss, logs = method.loss(batch, draws)
            loss.backward()
            method.pull()
            method.optimizer.step()
            steps += 1
            method.after_step(steps, draws)
            method.push()
            for name, mean in {"loss": loss, **logs}.items():
                sums[name] = sums.get(name, 0) + mean.detach() * len(batch.y)
        record = {"epoch": epoch, "lr": rate(settings, epoch)}
        record |= {f"train_{name}": (total / len(data.train)).item() for name, total in sums.items()}
        deployed = method.validated()
        record |= validation(method, deployed, data, epoch)
        method.after_epoch(record)
        history.append(record)
        if not best or record["val_robust"] > best["robust"]:
            tensors = {name: t.detach().clone() for name, t in method.validated().state_dict().items()}
            best = {"epoch": epoch, "robust": record["val_robust"], "tensors": tensors, "report": method.report()}
            if hands_over == "best":
                handed_over = {name: t.detach().clone() for name, t in method.tensors().items()}
    if hands_over == "last":
        handed_over = {name: t.detach().clone() for name, t in method.tensors().items()}
    return {"history": history, "best": best, "handed_over": handed_over}
