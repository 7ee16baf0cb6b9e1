"""Gradients of a recorded forward pass: of the input, of batch norms' parameters, of weights.

`g` stands for the gradient with respect to a map before its ReLU, that is to the output of the batch norms that the map is a sum of. With
it come the totals that these batch norms need (norm.py): of g, of g times the raw outputs of the first, of g times those of the second.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch
from torch import Tensor, nn

from methods.sparse.calibration import calibration
from methods.sparse.geometry import Geometry, Shape
from methods.sparse.gradient_all import gradient_of_all
from methods.sparse.gradient_some import gradient_of_some
from methods.sparse.lanes import LANES
from methods.sparse.layout import Buffer, Pool, address, pack, unpack
from methods.sparse.lists import Kept
from methods.sparse.norm import add_up
from methods.sparse.pooling import max_backward, mean_backward
from methods.sparse.sink import Sink
from methods.sparse.sweep import sweep
from methods.sparse.tape import Applied, Map, Pooled, Tape
from methods.sparse.threads import share, threads

Gradient = tuple[Buffer, np.ndarray | None]
FEW = 0.1  # share of the weights up to which gradients one by one are sooner had than those of all


class Backward:
    """One backward pass. Gradients of the parameters in `wanted` (by id) come to `gradients`; that of the input is returned.

    Of a convolution that has `places` (methods/networks/resnet.py) gradients elsewhere may be left at 0.
    """

    def __init__(self, tape: Tape, pool: Pool, wanted: set[int], *, wants_input: bool, places: Mapping[nn.Module, Tensor]):
        self.tape, self.pool, self.wanted, self.wants_input, self.places = tape, pool, wanted, wants_input, places
        self.gradients: dict[int, Tensor] = {}

    def __call__(self, gradient: Tensor) -> Tensor | None:
        tape, head = self.tape, self.tape.head
        g = self.pool.take(head.extent.floats)
        pack(gradient.detach()[:, :, None, None], g.array)
        output = Map(head.extent, None, None, origins=(head,))
        g = self.through(head, self.spread(g, output), into=head.read)
        g = self.spread(g[0], tape.last)
        for block in reversed(tape.blocks):
            added = g[0]
            if block.projection is not None:
                added, _ = self.through(block.projection, g, 2, into=block.projection.read)
            for applied in reversed(block.body[1:]):
                g = self.through(applied, g, into=applied.read)
            g = self.through(block.body[0], g, into=block.body[0].read, added=added)
        if tape.pooled is not None:
            g = self.unpooled(g[0], tape.pooled)
        g = self.through(tape.stem, g, into=tape.stem.read if self.wants_input else None)
        if g is None:
            return None
        scale = torch.from_numpy(tape.stem.read.factors.scale).view(1, -1, 1, 1)
        return unpack(g[0].array, tape.stem.read.extent).mul_(scale)

    def through(self, applied: Applied, g: Gradient, kind: int = 1, *, into: Map | None, added: Buffer | None = None) -> Gradient | None:
        """From the gradient at a layer's batch norm to that at the map `into` that the layer read; its parameters' on the way.

        `kind` says which of the totals is that with this layer's raw outputs.
        """
        values, totals = g
        normed, e = applied.normed, applied.extent
        gradient = Map(e, values, normed.backward(totals, kind), applied.values if normed.batch else None)
        self.parameters(applied, gradient, totals, kind)
        if into is None:
            return None
        geometry = applied.shape.backward(e.blocks)
        target, sums, sink = self.sink(into, geometry, added)
        lists = applied.kept.lists(applied.shape, geometry, backward=True, break_even=calibration().break_even)
        sweep(self.pool, gradient.source(), lists, geometry, sink, e.blocks)
        return target, None if sums is None else add_up(sums.array, geometry.slots, into.extent.channels, e.images)

    def sink(self, into: Map, geometry: Geometry, added: Buffer | None = None) -> tuple[Buffer, Buffer | None, Sink]:
        """Where the gradient at a map goes, with sums if its origins need them."""
        target = self.pool.take(into.extent.floats)
        partners = [origin.values for origin in into.origins]
        needed = any(origin.normed.batch or self.asked(origin) for origin in into.origins)
        sums = geometry.sums(self.pool, into.extent.blocks) if needed else None
        first, second = ([address(partner) for partner in partners] + [0, 0])[:2] if needed else (0, 0)
        return target, sums, Sink(target.address, address(added), address(into.bits), address(sums), first, second, into.extent.past)

    def asked(self, applied: Applied) -> bool:
        """Whether somebody wants the gradient of a layer's bias or of its batch norm's parameters."""
        norm = applied.layer.norm
        some = [applied.layer.conv.bias] + ([norm.weight, norm.bias] if norm is not None else [])
        return any(id(parameter) in self.wanted for parameter in some if parameter is not None)

    def spread(self, means: Buffer, into: Map) -> Gradient:
        """From the gradient of a map's means to that of the map."""
        return self._everywhere(into, lambda *arguments: mean_backward(*arguments[:2], means.address, *arguments[2:]))

    def unpooled(self, maxima: Buffer, pooled: Pooled) -> Gradient:
        """From the gradient of a map's maxima to that of the map."""
        places = maxima.address, pooled.winners.address
        return self._everywhere(pooled.read, lambda *arguments: max_backward(*arguments[:2], *places, *arguments[2:]))

    def _everywhere(self, into: Map, kernel: Callable[..., None]) -> Gradient:
        """Call a kernel that makes the gradient at a map, block by block."""
        e = into.extent
        geometry = Shape(e.channels, e.channels, 1, 1, e.height, e.width).backward(e.blocks)
        target, sums, sink = self.sink(into, geometry)
        rows = [self.pool.take(e.width * LANES) for _ in range(threads())]

        def work(thread: int, first: int, last: int) -> None:
            kernel(first, last, e.height, e.channels, e.width, geometry.slot, geometry.slots, rows[thread].address, sink)

        share(work, e.blocks)
        return target, None if sums is None else add_up(sums.array, geometry.slots, e.channels, e.images)

    def parameters(self, applied: Applied, gradient: Map, totals: np.ndarray | None, kind: int) -> None:
        """Gradients of a layer's weight and bias and of its batch norm's gain and offset, where wanted."""
        norm, normed = applied.layer.norm, applied.normed
        if norm is not None and norm.affine and totals is not None:
            self._give(norm.weight, normed.gain_gradient(totals, kind))
            self._give(norm.bias, totals[:, 0])
        if applied.layer.conv.bias is not None and totals is not None:
            self._give(applied.layer.conv.bias, normed.bias_gradient(totals))
        if id(applied.layer.conv.weight) in self.wanted:
            places = self.places.get(applied.layer.conv)
            some = None if places is None else Kept(places.to(torch.float32).numpy())
            few = some is not None and some.density <= FEW
            made = gradient_of_some(applied, gradient, some, self.pool) if few else gradient_of_all(applied, gradient, self.pool)
            self.gradients[id(applied.layer.conv.weight)] = made

    def _give(self, parameter: nn.Parameter, gradient: np.ndarray) -> None:
        if id(parameter) in self.wanted:
            self.gradients[id(parameter)] = torch.from_numpy(gradient).to(parameter.dtype)
