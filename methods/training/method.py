"""The contract of a training method, with adversarial training of a plain network as its default behaviour.

A method is one file with a literal RECIPE and a class METHOD derived from `Method`; it overrides what it does differently. The network
is always plain (see methods.pruning.makers): what is trained instead of its weights are makers. The loop calls, per step: `loss`, backward,
`pull`, the optimiser, `after_step`, `push`; per epoch: validation on `validated()`, `after_epoch`. What a method promises of its network,
`declared_counts` and the run's precision, is checked before the network is published.

Several processes can train a method together (methods.distributed.world) if its loss is a mean over the images of its batch, plus what
does not depend on them, and if random numbers for images are drawn by `methods.data.part.drawn`; everything else may be drawn and decided
as by one.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from methods.attacks.atta import Atta, Canvas
from methods.attacks.pgd import mode, pgd
from methods.core import datasets
from methods.core.allocation import keep_fraction
from methods.core.errors import UserError
from methods.core.radius import radius
from methods.data.augment import AUGMENTS
from methods.data.load import Data
from methods.data.split import Batch, generator
from methods.networks import init
from methods.networks.resnet import Net, memory_format
from methods.pruning.makers import Realisation
from methods.training import declared
from methods.training.losses import accuracy
from methods.training.network import network, weight_report

ATTACKS = ("pgd", "fgsm_atta", "trades", "none")


class Method:
    """Adversarial training of all weights; the base of every method."""

    engine = "dense"  # which computes the network (methods/sparse/choice.py); set by the loop
    hands_over: str | None = None  # which state children of this run start from: "last", "best" or none

    def __init__(self, spec: dict[str, Any], data: Data, *, device: torch.device, parent: dict[str, Tensor] | None = None):
        self.spec, self.device = spec, device
        self.options: dict[str, Any] = spec.get("options", {})
        self.seed = spec["seed"]
        self.eps = radius(spec["eps"])
        self.samples = len(data.train)
        self.keep = keep_fraction(spec["sparsity"]) if "sparsity" in spec else 1.0
        self.net = self.build_network(data)
        self.layout = memory_format(self.net)
        self.initialise()
        makers = self.makers()
        if parent is not None:
            self.inherit(parent, makers)
        self.net.to(device, memory_format=self.layout)  # type: ignore[call-overload]  # torch's stubs do not know it
        for maker in makers.values():
            maker.to(device)
        self.realisation = Realisation(self.net, makers)
        self.optimizer: torch.optim.Optimizer  # set by the loop before the first step
        self.attack = self._attack(spec["attack"], data)
        self.push()

    # -- what a method usually overrides ------------------------------------------------------------------------------------------

    def build_network(self, data: Data) -> Net:
        """The network to be trained, before its weights are drawn."""
        return network(self.spec, data)

    def initialise(self) -> None:
        """Draw the initial weights of the network's convolutions, and the classifier's bias where it has one (PyTorch's law)."""
        kind, draws = self.spec["init"]["weights"], self.draws("weights")
        for name, conv in self.net.convs():
            conv.weight.data.copy_(init.weights(kind, conv.weight.shape, draws, keep=self.keep, stream=(self.seed, name)))
        if (bias := self.net.head.bias) is not None:
            bias.data.copy_(init.bias(self.net.head.weight.shape, self.draws("bias")))

    def makers(self) -> dict[str, nn.Module]:
        """Makers of convolution weights by layer name; layers without one train their weight itself."""
        return {}

    def inherit(self, parent: dict[str, Tensor], makers: dict[str, nn.Module]) -> None:
        """Take over the state that the parent run handed over."""
        raise UserError(f"method '{self.spec['method']}' does not start from a parent run; remove 'parent' from its spec")

    def loss(self, batch: Batch, draws: torch.Generator) -> tuple[Tensor, dict[str, Tensor]]:
        """Loss of a batch, and batch means to log (tensors on the device)."""
        _, adv = self.adversarial(batch, draws)
        logits = self.net(adv)
        return F.cross_entropy(logits, batch.y), {"acc": accuracy(logits, batch.y)}

    def after_step(self, step: int, draws: torch.Generator) -> None:
        """Called after each optimiser step with the number of steps done."""

    def after_epoch(self, record: dict[str, float]) -> None:
        """Called with the epoch's history record, after validation."""

    def validated(self) -> Net:
        """The network whose validation accuracy decides, and which is deployed if it is the best."""
        return self.net

    def report(self) -> dict[str, Any]:
        """What a reader must know of the deployed network, besides its accuracy."""
        return weight_report(self.validated())

    def declared_counts(self, sizes: list[int]) -> declared.Counts:
        """Non-zero weights that the run declares, of layers of these sizes: each layer's, or their sum, or None where the method promises
        no number and reports its density instead."""
        for key in ("sparsity", "p"):
            if key in self.spec:
                raise UserError(
                    f"'{key}: {self.spec[key]}': method '{self.spec['method']}' prunes nothing; remove '{key}' from the run (a method that"
                    " prunes says how many weights it keeps in 'declared_counts')"
                )
        return sizes

    def check_declared(self, tensors: dict[str, Tensor], report: dict[str, Any]) -> None:
        """Refuse a finished network, given by its tensors and its report, that is not what the run declares."""
        weights = {name: tensors[f"{name}.weight"] for name, _ in self.net.convs()}
        declared.check_precision(self.spec, weights)
        declared.check_counts(self.spec, weights, self.declared_counts([weight.numel() for weight in weights.values()]))

    def check_start(self) -> None:
        """Refuse what can be seen to go wrong before hours of training are spent on it."""
        weights = {name: conv.weight.detach() for name, conv in self.validated().convs()}
        declared.check_precision(self.spec, weights)
        self.declared_counts([weight.numel() for weight in weights.values()])

    def extra_state(self) -> dict[str, Any]:
        """State beyond the network, the makers, the optimiser and the attacker: tensors and plain values."""
        return {}

    def load_extra_state(self, state: dict[str, Any]) -> None:
        """Counterpart of `extra_state`."""

    # -- machinery ---------------------------------------------------------------------------------------------------------------

    @property
    def epoch_images(self) -> int:
        """Training images that an epoch sees."""
        return datasets.epoch_images(self.spec["train"], self.samples)

    @property
    def epoch_steps(self) -> int:
        """Optimiser steps of an epoch; the last batch may be smaller."""
        return datasets.epoch_steps(self.spec["train"], self.samples)

    def draws(self, *key: int | str, device: torch.device | str = "cpu") -> torch.Generator:
        """A generator that is a function of the seed and the key alone."""
        return generator(self.seed, *key, device=device)

    @property
    def augment(self) -> str:
        """The loader's augmentation: 'options.augment', or the usual one of the data set. FGSM+ATTA augments by itself; on ImageNet the
        loader's random crop stays on beside it, as in the official code, so stored perturbations are not aligned with the content;
        'attack.aligned' turns that crop off."""
        large = self.spec["dataset"] == "imagenet100"
        if isinstance(self.attack, Atta) and (not large or self.spec["attack"].get("aligned", False)):
            return "none"
        augment = self.options.get("augment", "resized_crop_flip" if large else "crop_flip")
        allowed = ("resized_crop_flip",) if large else tuple(AUGMENTS)
        if augment not in allowed:
            raise UserError(f"'options.augment: {augment}' is not possible for {self.spec['dataset']}; allowed: {', '.join(allowed)}")
        return augment

    def _attack(self, settings: dict[str, Any], data: Data) -> Atta | str:
        name = settings["name"]
        if name not in ATTACKS:
            raise UserError(f"unknown 'attack.name: {name}'; allowed: {', '.join(ATTACKS)}")
        if name != "fgsm_atta" or self.eps == 0:
            return name
        canvas = Canvas(self.samples, data.shape, self.eps, generator=self.draws("canvas", device=self.device))
        return Atta(canvas, eps=self.eps, alpha=settings["step"] * self.eps)

    def adversarial(self, batch: Batch, draws: torch.Generator) -> tuple[Tensor, Tensor]:
        """(clean, adversarial) batch under the run's training attack; clean twice when eps is 0."""
        settings = self.spec["attack"]
        if self.eps == 0 or self.attack == "none":
            return batch.x, batch.x
        if isinstance(self.attack, Atta):
            return self.attack(self.net, batch.x, batch.y, batch.index, draws)
        with mode(self.net, settings["bn"] == "train"):
            adv = pgd(
                self.net,
                batch.x,
                batch.y,
                eps=self.eps,
                alpha=settings["step"] * self.eps,
                steps=settings["steps"],
                generator=draws,
                start=settings["start"],
                pick=settings["pick"],
            )
        return batch.x, adv

    def trainables(self) -> list[nn.Parameter]:
        """Everything the optimiser moves."""
        made = {id(conv.weight) for conv, _ in self.realisation.pairs}
        own = [p for p in self.net.parameters() if p.requires_grad and id(p) not in made]
        return own + [p for maker in self.realisation.makers.values() for p in maker.parameters() if p.requires_grad]

    def decided(self) -> dict[str, Tensor]:
        """The numbers that training goes on from: all but the made weights, which follow from them."""
        made = {f"net.{layer}.weight" for layer in self.realisation.makers}
        return {name: t for name, t in self.tensors().items() if t.is_floating_point() and name not in made}

    def parameters(self) -> list[nn.Parameter]:
        """Everything that backward may leave a gradient on: of the network and of the makers."""
        return [*self.net.parameters(), *(p for maker in self.realisation.makers.values() for p in maker.parameters())]

    def push(self) -> None:
        """Write the made weights into the network."""
        self.realisation.push()

    def pull(self) -> None:
        """Carry the weights' gradients to what makes them."""
        self.realisation.pull()

    def tensors(self) -> dict[str, Tensor]:
        """Every tensor of the network and the makers, by name: the state that a child run may inherit."""
        tensors = {f"net.{name}": t for name, t in self.net.state_dict().items()}
        for layer, maker in self.realisation.makers.items():
            tensors |= {f"maker.{layer}.{name}": t for name, t in maker.state_dict().items()}
        return tensors

    def state(self) -> dict[str, Any]:
        attack = self.attack.canvas.state() if isinstance(self.attack, Atta) else {}
        return {"tensors": self.tensors(), "optimizer": self.optimizer.state_dict(), "attack": attack, "extra": self.extra_state()}

    def load_state(self, state: dict[str, Any]) -> None:
        ours = self.tensors()
        for name, saved in state["tensors"].items():
            ours[name].copy_(saved)
        self.optimizer.load_state_dict(state["optimizer"])
        if isinstance(self.attack, Atta):
            self.attack.canvas.load(state["attack"])
        self.load_extra_state(state["extra"])
        self.push()
