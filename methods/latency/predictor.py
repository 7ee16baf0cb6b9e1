"""Logits of a few images at a time, by whatever computes them soonest on this machine."""

from __future__ import annotations

import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from methods.core import settings
from methods.core.errors import UserError
from methods.networks.fold import fold
from methods.networks.resnet import Net, memory_format
from methods.sparse.choice import SPARSE, QuickForm, lacking, unfit, work
from methods.sparse.threads import share, threads

if TYPE_CHECKING:
    import numpy as np

    from methods.latency.program import Program

FEW = 8  # images that are computed one by one; the other engine has sixteen in a vector
MOST_KEPT = 0.4  # share of the multiplications above which torch is sooner done with all of them
SIDE = 32  # of the images for which multiplications are counted


class Predictor:
    """A copy of a network, for inference: later changes of the network are not seen, gradients are not computed.

    `engine` says what computes: "sparse", or "dense" for the `reason` given. SUITE_ENGINE insists on one, where it can be.
    """

    def __init__(self, net: nn.Module):
        self.net: Any = copy.deepcopy(net).eval().requires_grad_(False)  # a Net where it is computed sparsely
        self.reason = lacking() or unfit(self.net) or self._unwanted()
        self.engine = SPARSE if self.reason is None else "dense"
        self._programs: dict[tuple[int, int], tuple[Program, list[np.ndarray]]] = {}

    def _unwanted(self) -> str | None:
        """Why torch is preferred to kernels that would do."""
        wanted = settings.engine()
        if wanted not in ("auto", SPARSE):
            return f"{settings.ENGINE}={wanted}"
        layers = work(self.net, SIDE)
        kept = sum(every * density for every, density in layers) / sum(every for every, _ in layers)
        if wanted == "auto" and kept > MOST_KEPT:
            return f"{kept:.0%} of its multiplications are not by zero"
        return None

    @torch.no_grad()
    def __call__(self, x: Tensor) -> Tensor:
        """Logits of images [n, 3, height, width] in [0, 1]."""
        if self.engine != SPARSE:
            return self._dense(x)
        if x.ndim != 4 or x.shape[1] != 3 or x.shape[2] * x.shape[3] == 0:
            raise UserError(f"images of shape {tuple(x.shape)} cannot be predicted; expected (images, 3, height, width)")
        if len(x) > FEW:
            return self._many(x)
        program, workspaces = self._program(*x.shape[2:])
        images, logits = x.float().numpy(), torch.empty(len(x), self.net.head.out_channels)

        def compute(thread: int, first: int, last: int) -> None:
            for i in range(first, last):
                logits[i] = torch.from_numpy(program(images[i], workspaces[thread]))

        while len(workspaces) < threads():
            workspaces.append(program.layout.workspace())
        share(compute, len(x))
        return logits

    def _program(self, height: int, width: int) -> tuple[Program, list[np.ndarray]]:
        """For images of this size, with a workspace for each thread."""
        from methods.latency.program import Program

        if (height, width) not in self._programs:
            self._programs[height, width] = Program(self.net, height, width), []
        return self._programs[height, width]

    @cached_property
    def _many(self) -> nn.Module:
        return QuickForm(self.net)

    @cached_property
    def _dense(self) -> nn.Module:
        if not isinstance(self.net, Net):
            return self.net
        return fold(self.net).to(memory_format=memory_format(self.net))  # type: ignore[call-overload] # torch's stub lacks it
