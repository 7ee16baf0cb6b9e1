"""The chain of layers of the ATMC recordings, and the method on it."""

from __future__ import annotations

from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from baselines.atmc import Atmc
from methods.data.split import Batch

MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)  # the official CIFAR-100 script normalises by these


class Chain(nn.Module):
    """The recordings' network: convolutions (the last of stride 2) with batch norm and ReLU, mean, classifier with bias.

    Kernels are told by the recorded weights. The classifier is a 1x1 convolution, as everywhere here.
    """

    def __init__(self, weights: dict[str, tuple[int, ...]], *, normalised: bool, dtype: torch.dtype):
        super().__init__()
        self.bodies = [name for name in weights if name.startswith("conv")]
        for name in self.bodies:
            out, inputs, kernel, _ = weights[name]
            stride = 2 if name == self.bodies[-1] else 1
            self.add_module(name, nn.Conv2d(inputs, out, kernel, stride, padding=(kernel - 1) // 2, bias=False))
            self.add_module(name.replace("conv", "bn"), nn.BatchNorm2d(out))
        out, inputs = weights["linear"]
        self.head = nn.Conv2d(inputs, out, 1)
        mean, std = (MEAN, STD) if normalised else ((0.0,) * 3, (1.0,) * 3)
        self.register_buffer("mean", torch.tensor(mean, dtype=dtype).view(1, 3, 1, 1), persistent=False)
        self.register_buffer("std", torch.tensor(std, dtype=dtype).view(1, 3, 1, 1), persistent=False)
        self.to(dtype)

    def forward(self, x: Tensor) -> Tensor:
        x = (x - self.mean) / self.std
        for name in self.bodies:
            x = F.relu(getattr(self, name.replace("conv", "bn"))(getattr(self, name)(x)))
        return self.head(x.mean((2, 3), keepdim=True)).flatten(1)

    def convs(self) -> list[tuple[str, nn.Conv2d]]:
        return [(name, getattr(self, name)) for name in (*self.bodies, "head")]


class Replay(Atmc):
    """The method on the recordings' network; what is recorded decides the adversarial batch and the codebooks' seeds."""

    def __init__(self, spec: dict, samples: int, net: Chain, parent: dict[str, Tensor]):
        self.given = net
        self.recorded_adv = self.found_adv = None
        self.recorded_seeds: dict[str, Tensor] = {}
        super().__init__(spec, SimpleNamespace(train=range(samples)), device=torch.device("cpu"), parent=parent)

    def build_network(self, data) -> nn.Module:
        return self.given

    def adversarial(self, batch: Batch, draws: torch.Generator) -> tuple[Tensor, Tensor]:
        clean, self.found_adv = super().adversarial(batch, draws)
        return clean, self.recorded_adv

    def seeds(self, name: str, weight: Tensor, values: Tensor, draws: torch.Generator) -> Tensor:
        recorded = self.recorded_seeds.get(name)  # none where our W has so gone astray that another tensor is fitted
        return super().seeds(name, weight, values, draws) if recorded is None else recorded
