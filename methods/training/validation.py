"""Validation: clean and robust accuracy of a network on images that it is not trained on."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from methods.attacks.pgd import pgd
from methods.data.split import Split
from methods.distributed.world import ALONE, World
from methods.networks.resnet import Net
from methods.training.method import Method
from methods.training.step import computing


@torch.no_grad()
def validate(method: Method, net: Net, split: Split, epoch: int, world: World = ALONE) -> dict[str, float]:
    """Clean and PGD accuracy and adversarial loss of a network on a split, in eval mode."""
    settings, eps, totals, size = method.spec["validate"], method.eps, torch.zeros(3, device=method.device), method.spec["train"]["batch"]
    strength = {"eps": eps, "alpha": settings["step"] * eps, "steps": settings["steps"]}
    points = {"start": settings.get("start", "uniform"), "pick": settings.get("pick", "worst")}
    with computing(method, net, training=False):
        for i, batch in enumerate(split.batches(batch=size, device=method.device, share=world.share)):
            x = batch.x.contiguous(memory_format=method.layout)
            draws = world.draws(method.draws("validate", epoch, i, device=method.device), world.part(min(size, len(split) - i * size)))
            with torch.enable_grad():
                adv = pgd(net, x, batch.y, generator=draws, **strength, **points)
            clean = net(x)
            logits = net(adv) if eps else clean
            right = [(out.argmax(1) == batch.y).sum().float() for out in (clean, logits)]
            totals += torch.stack([*right, F.cross_entropy(logits, batch.y, reduction="sum")])
    clean_acc, robust_acc, loss = (world.total(totals) / len(split)).tolist()
    return {"val_clean": clean_acc, "val_robust": robust_acc, "val_loss": loss}
