"""Recorded steps of the official HYDRA and RST programs, and the suite's own methods set up to repeat them.

Arrays bear official tensor names; `Official` translates them. `Lessons` makes a real method visit the recorded attack points: it draws the
recorded noise, and each input gradient is, after ours has been written down, replaced by the recorded sign.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple
from unittest import mock

import numpy as np
import torch
from torch import Tensor, nn

from methods.attacks import pgd
from methods.core.architectures import Arch
from methods.networks.resnet import Net
from methods.training.method import Method
from methods.training.optim import optimizer

CLASSIFIERS = ("linear", "fc")
SCORES = (".popup_scores", ".scores")


class Official:
    """The arrays of one file, the network they belong to, and our names for theirs."""

    def __init__(self, path: Path):
        with np.load(path, allow_pickle=False) as arrays:
            self.arrays = {key: torch.from_numpy(arrays[key]) for key in arrays.files}

    def __getitem__(self, key: str) -> Tensor:
        return self.arrays[key]

    def number(self, key: str) -> float:
        """A setting as it was typed: float32 0.031 is 0.031, not 0.03099999949."""
        return float(str(self.arrays[key].numpy()[()]))

    def group(self, prefix: str) -> dict[str, Tensor]:
        """Arrays under a prefix, by the rest of their key."""
        return {key.removeprefix(f"{prefix}/"): value for key, value in self.arrays.items() if key.startswith(f"{prefix}/")}

    def steps(self) -> range:
        return range(len(self.group("x")))

    def net(self, affine: bool, bias: bool) -> Net:
        width, blocks = int(self["width"]), tuple(self["blocks"].tolist())
        bottleneck = "init/layer1.0.conv3.weight" in self.arrays
        shape = Arch(blocks=blocks, channels=tuple(width * 2**stage for stage in range(4)), bottleneck=bottleneck)
        return Net(shape, classes=int(self["classes"]), bn_affine=affine, head_bias=bias)

    def module(self, official: str) -> str:
        """Our name of an official module."""
        blocks = self["blocks"].tolist()
        if name := re.fullmatch(r"layer(\d)\.(\d+)\.(.+)", official):
            number = sum(blocks[: int(name[1]) - 1]) + int(name[2])
            kind, place = re.fullmatch(r"(conv|bn|shortcut\.)(\d)", name[3]).groups()
            part = {"conv": f"convs.{int(place) - 1}", "bn": f"norms.{int(place) - 1}"}
            return f"blocks.{number}." + part.get(kind, "projection_norm" if place == "1" else "projection")
        return {"conv1": "stem", "bn1": "stem_norm", **dict.fromkeys(CLASSIFIERS, "head")}[official]

    def tensor_name(self, official: str) -> str:
        """Our name, as `Method.tensors` has it, of an official tensor; weights and scores of convolutions are looked for in makers."""
        module, _, kind = official.rpartition(".")
        module = self.module(module)
        holder = "maker" if "norm" not in module and kind != "bias" else "net"
        return f"{holder}.{module}." + ("scores" if official.endswith(SCORES) else kind)

    def state(self, prefix: str) -> dict[str, Tensor]:
        """Recorded tensors by our names."""
        return {self.tensor_name(name): value for name, value in self.group(prefix).items()}

    def after(self, step: int) -> dict[str, Tensor]:
        """The complete state after a step: what is not recorded has not changed. Step -1 is the start."""
        return self.state("init") if step < 0 else self.after(step - 1) | self.state(f"after{step}")

    def sparsity(self) -> float:
        return float(1 - Decimal(repr(self.number("k"))))


class Seen(NamedTuple):
    """One forward pass: its input and its logits."""

    x: Tensor
    logits: Tensor


class _Lesson(torch.autograd.Function):
    """Identity whose gradient is the next recorded sign; our own is written down."""

    @staticmethod
    def forward(ctx, x: Tensor, lessons: Lessons) -> Tensor:
        ctx.lessons = lessons
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None]:
        lessons = ctx.lessons
        lessons.grads.append(grad.clone())
        return (grad if lessons.signs is None else lessons.signs[len(lessons.grads) - 1].to(grad.dtype)), None


class Lessons:
    """A method of the suite on the recorded network, in the memory layout of the recording."""

    def __init__(self, official: Official, method: type[Method], spec: dict, net: Net, parent: dict[str, Tensor] | None = None):
        parts = {"build_network": lambda _, data: net, "initialise": lambda _: None}
        data = SimpleNamespace(train=range(1), shape=tuple(official["x/0"].shape[1:]))
        self.official = official
        self.method = type(f"Taught{method.__name__}", (method,), parts)(spec, data, device=torch.device("cpu"), parent=parent)
        self.net = self.method.net.to(memory_format=torch.contiguous_format).train()
        self.method.optimizer = optimizer(self.method.trainables(), spec["train"])
        self.seen: list[Seen] = []
        self.grads: list[Tensor] = []
        self.signs: Tensor | None = None
        self.net.register_forward_pre_hook(lambda _, args: (_Lesson.apply(args[0], self) if args[0].requires_grad else args[0],))
        self.net.register_forward_hook(lambda _, args, logits: self.seen.append(Seen(args[0].detach().clone(), logits.detach().clone())))

    @contextmanager
    def taught(self, signs: Tensor | None, draw: Tensor) -> Iterator[None]:
        """Attacks draw the recorded noise and, if signs are given, follow them."""
        self.seen, self.grads, self.signs = [], [], signs
        with mock.patch.object(pgd, "draw_like", lambda *_, **__: draw):
            yield

    def tensors(self) -> dict[str, Tensor]:
        """Our state by the names that `Official` gives; convolutions without a maker are their own."""
        tensors = self.method.tensors()
        own = {f"maker.{name}.weight": conv.weight.data for name, conv in self.net.convs() if name not in self.method.realisation.makers}
        return tensors | own

    def parameters(self) -> dict[str, nn.Parameter]:
        """What is trained, by the same names."""
        trained = {id(p): p for p in self.method.trainables()}
        modules = [(f"maker.{name}", maker) for name, maker in self.method.realisation.makers.items()]
        named = [(f"{prefix}.{name}", p) for prefix, module in modules for name, p in module.named_parameters()]
        named += [(f"net.{name}", p) for name, p in self.net.named_parameters()]
        convs = {f"net.{name}.weight": f"maker.{name}.weight" for name, _ in self.net.convs()}
        return {convs.get(name, name): p for name, p in named if id(p) in trained}

    def load(self, state: dict[str, Tensor]) -> None:
        """Write a recorded state into ours. Scores that nothing of ours uses (before pruning) have no place here."""
        ours = self.tensors()
        with torch.no_grad():
            for name, value in state.items():
                if name in ours:
                    ours[name].copy_(value.view(ours[name].shape))
        self.method.push()
