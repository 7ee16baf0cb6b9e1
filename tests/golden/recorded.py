"""A recording of official training steps, and our own training code set up to repeat it.

`Recording` reads the arrays and builds the network that its layer table describes. `Replay` is a real method of the suite on that
network, with two things added: what the network computes is written down at each forward, and, while it is `taught`, every attack's
gradient is replaced by the recorded sign (after our own sign has been written down). An attack then visits the recorded points, so
rounding cannot make it drift, and the attack's own code still does everything else: start, projection, choice of the iterate.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple
from unittest import mock

import numpy as np
import torch
from torch import Tensor

from methods.attacks import pgd
from methods.core.architectures import Arch
from methods.networks.resnet import Net
from methods.training.method import Method
from methods.training.optim import optimizer

FIRST, THIRD = 1, 3  # positions in the layer table: first and third convolution of a block's body


class Recording:
    """The arrays of one file, as tensors, and the network they belong to."""

    def __init__(self, path: Path):
        with np.load(path, allow_pickle=False) as arrays:
            self.arrays = {key: arrays[key] for key in arrays.files}
        self.path = path
        self.layers = self.tensor("layers")

    def __contains__(self, key: str) -> bool:
        return key in self.arrays

    def tensor(self, key: str) -> Tensor:
        return torch.from_numpy(self.arrays[key])

    def number(self, key: str) -> float:
        return float(self.tensor(key).reshape(-1)[0])

    def steps(self) -> range:
        count = 0
        while f"s{count}.loss" in self:
            count += 1
        return range(count)

    def per_layer(self, key: str) -> list[Tensor]:
        """A flat per-weight vector, cut and shaped by layer."""
        shapes = [(row[4], row[3], row[5], row[5]) for row in self.layers.tolist()]
        return [part.view(shape) for part, shape in zip(self._cut(key, "offsets"), shapes, strict=True)]

    def per_norm(self, key: str) -> list[Tensor]:
        """A flat per-channel vector, cut by batch norm."""
        return self._cut(key, "bn_offsets")

    def _cut(self, key: str, offsets: str) -> list[Tensor]:
        flat, ends = self.tensor(key), self.tensor(offsets)
        return list(flat.split((ends[1:] - ends[:-1]).tolist()))

    def net(self) -> Net:
        """Our network for the layer table."""
        affine = any(key.endswith("bn_gamma") for key in self.arrays)
        net = network(self.layers, lbn=bool(self.number("lbn")), affine=affine)
        net.mean.copy_(self.tensor("norm_mean").view(1, 3, 1, 1))
        net.std.copy_(self.tensor("norm_std").view(1, 3, 1, 1))
        return net


def network(layers: Tensor, *, lbn: bool, affine: bool) -> Net:
    """Our network for a layer table: rows of stage, block, position, c_in, c_out, kernel, stride, padding, size."""
    rows = layers.tolist()
    stages = [[row for row in rows if row[0] == stage] for stage in (1, 2, 3, 4)]
    arch = Arch(
        blocks=tuple(1 + max(row[1] for row in stage) for stage in stages),
        channels=tuple(next(row[4] for row in stage if row[2] == FIRST) for stage in stages),
        bottleneck=any(row[2] == THIRD for row in rows),
    )
    return Net(arch, classes=rows[-1][4], stem="imagenet" if rows[0][5] == 7 else "cifar", lbn=lbn, bn_affine=affine)


def conv_table(net: Net) -> list[list[int]]:
    """c_in, c_out, kernel, stride, padding, size of each convolution, in order."""
    convs = [conv for _, conv in net.convs()]
    return [[c.in_channels, c.out_channels, c.kernel_size[0], c.stride[0], c.padding[0], c.weight.numel()] for c in convs]


class Seen(NamedTuple):
    """One forward pass of the network: its input, its logits, and the running statistics after it."""

    x: Tensor
    logits: Tensor
    bn_mean: Tensor
    bn_var: Tensor


class _Lesson(torch.autograd.Function):
    """Identity whose gradient is the next recorded sign; our own is written down."""

    @staticmethod
    def forward(ctx, x: Tensor, replay: Replay) -> Tensor:
        ctx.replay = replay
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None]:
        signs, lesson = ctx.replay.signs, ctx.replay.lesson
        signs.append(grad.sign())
        return lesson[len(signs) - 1].to(grad.dtype), None


class Replay:
    """A method on the recorded network."""

    def __init__(self, recording: Recording, method: type[Method], spec: dict):
        self.recording = recording
        parts = {"build_network": lambda _, data: recording.net(), "initialise": lambda _: None}
        samples = len(recording.tensor("x")) if "x" in recording else 1
        shape = tuple(recording.tensor("x" if "x" in recording else "s0.x").shape[1:])
        data = SimpleNamespace(train=range(samples), shape=shape)
        self.method = type(f"Replayed{method.__name__}", (method,), parts)(spec, data, device=torch.device("cpu"))
        # Training prefers channels_last. The recordings were made in the other layout, whose rounding the tolerances describe: an
        # activation within rounding of a ReLU's kink decides a gradient.
        self.method.layout = torch.contiguous_format
        self.net = self.method.net.to(memory_format=self.method.layout)
        self.method.optimizer = optimizer(self.method.trainables(), spec["train"]) if "train" in spec else None
        self.seen: list[Seen] = []
        self.signs: list[Tensor] = []
        self.lesson: Tensor | None = None
        self.net.register_forward_pre_hook(lambda _, args: (self._teach(args[0]),))
        self.net.register_forward_hook(lambda _, args, logits: self._see(args[0], logits))

    def _teach(self, x: Tensor) -> Tensor:
        return _Lesson.apply(x, self) if self.lesson is not None and x.requires_grad else x

    def _see(self, x: Tensor, logits: Tensor) -> None:
        self.seen.append(Seen(x.detach().clone(), logits.detach().clone(), *self.statistics()))

    @contextmanager
    def taught(self, signs: Tensor | None, draw: Tensor | None = None) -> Iterator[None]:
        """Attacks draw the recorded noise and, if signs are given, follow them."""
        self.seen, self.signs, self.lesson = [], [], signs
        given = mock.patch.object(pgd, "draw_like", lambda x, *_, **__: draw.contiguous(memory_format=self.method.layout))
        try:
            with given:
                yield
        finally:
            self.lesson = None

    def put(self, vector: str, key: str) -> None:
        """Write a recorded per-weight vector (weights, scores) into whatever of ours holds it."""
        with torch.no_grad():
            for parameter, value in zip(self.parameters(vector), self.recording.per_layer(key), strict=True):
                parameter.copy_(value)

    def load(self, prefix: str, trained: str) -> None:
        """A recorded state: what is trained, and batch norm."""
        self.put(trained, f"{prefix}{trained}")
        self.load_norms(prefix)
        self.method.push()

    def load_norms(self, prefix: str) -> None:
        keys = {"bn_mean": "running_mean", "bn_var": "running_var", "bn_gamma": "weight", "bn_beta": "bias"}
        for key, name in keys.items():
            if f"{prefix}{key}" in self.recording:
                for norm, value in zip(self.net.norms(), self.recording.per_norm(f"{prefix}{key}"), strict=True):
                    getattr(norm, name).data.copy_(value)
        for norm, count in zip(self.net.norms(), self.recording.tensor(f"{prefix}bn_updates"), strict=True):
            norm.num_batches_tracked.copy_(count)

    def parameters(self, vector: str) -> list[torch.nn.Parameter]:
        """Our tensors of a recorded per-weight vector, by layer. BinaryConnect's weights are our latents."""
        makers, names = self.method.realisation.makers, {"weights": ("latent", "weight"), "scores": ("scores",)}[vector]
        holders = [makers.get(name, conv) for name, conv in self.net.convs()]
        return [getattr(holder, next(name for name in names if hasattr(holder, name))) for holder in holders]

    def statistics(self) -> tuple[Tensor, Tensor]:
        """Running means and variances, flat."""
        norms = self.net.norms()
        return torch.cat([norm.running_mean for norm in norms]), torch.cat([norm.running_var for norm in norms])

    def updates(self) -> Tensor:
        """How often each batch norm's statistics have been updated."""
        return torch.stack([norm.num_batches_tracked for norm in self.net.norms()])
