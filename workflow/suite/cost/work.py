"""What a training or an evaluation computes, counted from its spec before anything runs.

The unit is a pass through the network: forward, gradient of the inputs and gradient of the weights take the same number of
multiplications, so each counts as one.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from methods.core import architectures, eval_spec
from methods.core.architectures import Network
from methods.core.datasets import DATASETS, epoch_images, epoch_steps
from methods.core.errors import UserError
from methods.core.run_spec import get


@dataclass(frozen=True, kw_only=True)
class Work:
    """Multiplications and additions, elements of feature maps, layers that are called (each call costs something by itself), and
    photographs that the host reads meanwhile."""

    flops: float = 0.0
    elements: float = 0.0
    calls: float = 0.0
    photographs: float = 0.0

    def __add__(self, other: "Work") -> "Work":
        return Work(**{name: value + getattr(other, name) for name, value in vars(self).items()})

    def __mul__(self, times: float) -> "Work":
        return Work(**{name: times * value for name, value in vars(self).items()})


def network(spec: Mapping) -> Network:
    """The network of a Run."""
    data = DATASETS[spec["dataset"]]
    return architectures.network(spec, classes=data.classes, image=data.side(spec.get("data", {})))


def passes(net: Network, count: float, *, images: float, batches: float) -> Work:
    """So many passes over images in batches."""
    return Work(flops=count * images * net.flops, elements=count * images * net.elements, calls=count * batches * len(net.layers))


def per_step(spec: Mapping) -> float:
    """Passes per image and training step."""
    attack, steps = spec["attack"], spec["attack"].get("steps", 0)
    if spec["method"] == "zoo":
        return 0
    if spec["eps"] == 0 or attack["name"] == "none":
        return 3
    mixed = 3 if spec["method"] == "atmc" and get(spec, "options.w_clean") else 0  # its loss has a clean part
    if attack["name"] == "trades":  # the clean answers once, steps, then a loss of the clean and of the attacked batch
        return 1 + 2 * steps + 6
    if attack["name"] == "fgsm_atta":
        return 2 + 3 + mixed
    if attack["name"] != "pgd":
        raise UserError(f"attack.name: '{attack['name']}' has no known cost; allowed: pgd, trades, fgsm_atta, none")
    # Of the worst iterate the last gradient is not needed.
    return 2 * steps - (attack.get("pick") == "worst") + 3 + mixed


def training(spec: Mapping) -> Work:
    """A whole training phase with its validations."""
    return sum(training_by_format(spec).values(), Work())


def training_by_format(spec: Mapping) -> dict[str, Work]:
    """A whole training phase by the number format it computes in: its steps in the Run's, its validations in float32."""
    net, settings = network(spec), spec["train"]
    samples, held_out = DATASETS[spec["dataset"]].counts(spec["data"])
    batches = epoch_steps(settings, samples)
    step = passes(net, per_step(spec), images=epoch_images(settings, samples), batches=batches)
    if get(spec, "options.factorise"):  # weights are made once per step, and their gradient is carried to two factors
        step += Work(flops=3 * net.factor_flops * batches)
    if DATASETS[spec["dataset"]].image > 32 and get(spec, "data.source") == "full":  # the others lie in memory
        step += Work(photographs=epoch_images(settings, samples))
    count = 1 if spec["eps"] == 0 else 2 * spec["validate"]["steps"] + 1 + (spec["validate"].get("pick") == "last")
    validation = passes(net, count, images=held_out, batches=math.ceil(held_out / settings["batch"]))
    epochs = 1 if spec["method"] == "zoo" else settings["epochs"]
    compute = settings.get("compute", "fp32")
    if compute == "fp32":
        return {compute: (step + validation) * epochs}
    return {compute: step * epochs, "fp32": validation * epochs}


def attack_passes(attack: str | Mapping) -> dict[str, int]:
    """Attack -> passes that it takes at most per image, in order."""
    chosen = eval_spec.parse({"attack": attack}).attack
    return {name: chosen.cost(name) for name in chosen.names}


def evaluation(run: Mapping, spec: Mapping, *, right: float = 1.0, robust: float = 1.0) -> Work:
    """An evaluation when a share of the images is classified right and a share withstands everything; both 1 is the worst case.

    An attack only sees images that withstood those before it, and stops at an image that falls: those that fall are taken to cost half
    of the first attack.
    """
    data = DATASETS[run["dataset"]]
    images = data.test[get(run, "data.source")]
    images = images if spec["examples"] == "all" else min(spec["examples"], images)
    costs = list(attack_passes(spec["attack"]).values())
    count = 1 + robust * sum(costs) + (right - robust) * sum(costs[:1]) / 2
    # A layer is called as often for one image of a block as for all: calls do not shrink with the images that are left.
    net, blocks, left = network(run), math.ceil(images / spec["block"]), min(1.0, robust * min(images, spec["block"]))
    calls = 1 + left * sum(costs) + (1 - left) * sum(costs[:1]) / 2
    return passes(net, count, images=images, batches=0) + passes(net, calls, images=0, batches=blocks)
