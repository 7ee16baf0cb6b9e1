"""One optimiser step of any method, and how its network computes meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor

from methods.attacks.pgd import mode
from methods.data.split import Batch
from methods.distributed.world import World
from methods.networks.resnet import Net
from methods.sparse.choice import computed_by
from methods.training.losses import running
from methods.training.method import Method
from methods.training.precision import compute_of, computed_in


@contextmanager
def computing(method: Method, net: Net, *, training: bool) -> Iterator[None]:
    """Every call of a network by an attack, a loss or validation happens inside: the one place that decides how it computes.

    `net` is the method's own network, or the one that it deploys. Its weights do not change inside; backward runs outside. A run's number
    format is that of its attack and training steps; validation is in float32. Which engine computes is the method's `engine`.
    """
    with mode(net, training), computed_in(compute_of(method.spec["train"]) if training else "fp32", net), computed_by(method.engine, net):
        yield


def step(method: Method, batch: Batch, epoch: int, number: int, world: World) -> dict[str, Tensor]:
    """Do step `number` of an epoch; the sums, over all images of the batch, of the loss and of what the method logs."""
    settings = method.spec["train"]
    part = world.part(min(settings["batch"], method.epoch_images - number * settings["batch"]))
    draws = world.draws(method.draws("step", epoch, number, device=method.device), part)
    batch = batch._replace(x=batch.x.contiguous(memory_format=method.layout))
    method.optimizer.zero_grad(set_to_none=True)
    with computing(method, method.net, training=True):
        loss, logs = method.loss(batch, draws)
    world.weigh(loss, part).backward()
    world.add_gradients(method.parameters())
    if "bn_devices" in settings:  # as in nn.DataParallel, whose running statistics are those of the first device
        world.copy_from_first(statistic for norm in method.net.norms() for statistic in running(norm))
    method.pull()
    method.optimizer.step()
    method.after_step(epoch * method.epoch_steps + number + 1, draws)
    method.push()
    return world.add({"loss": loss, **logs}, len(batch.y))
