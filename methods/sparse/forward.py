"""A network of methods/networks/resnet.py, forward, in the blocked layout.

Only raw outputs of convolutions are written to memory. Batch norm, shortcut and ReLU are applied by whoever reads them (source.py): a `Map`
says how. The first convolution of a block writes the block's input down, because the shortcut needs it as well.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from methods.networks.resnet import Net
from methods.sparse.calibration import calibration
from methods.sparse.lanes import LANES
from methods.sparse.layer import Layer, Layers
from methods.sparse.layout import Buffer, Extent, Pool, address, pack, unpack
from methods.sparse.norm import Factors, Normed, add_up, plain
from methods.sparse.pooling import max_forward, mean_forward
from methods.sparse.sink import Sink
from methods.sparse.source import Source
from methods.sparse.sweep import sweep
from methods.sparse.tape import Applied, BlockTape, Map, Pooled, Tape
from methods.sparse.threads import share, threads


class Forward:
    """One forward pass. `record`: ReLU's bits stay, for any gradient; `keep`: so do raw outputs, for weights' and statistics'."""

    def __init__(self, net: Net, layers: Layers, pool: Pool, *, record: bool, keep: bool):
        self.net, self.layers, self.pool, self.record, self.keep = net, layers, pool, record, keep

    def __call__(self, x: Tensor) -> tuple[Tensor, Tape]:
        stem = self.convolved(self.layers.stem, self.image(x))
        tape, now = Tape(stem), self.normed(stem)
        if self.net.pool is not None:
            tape.pooled, now = self.pooled(now)
        for block in self.layers.blocks:
            if now.relu:  # not yet computed
                now.copy = self.pool.take(now.extent.floats)
            entry = now.copy or now.values
            body = [self.convolved(block.body[0], now)]
            for layer in block.body[1:]:
                body.append(self.convolved(layer, self.normed(body[-1])))
            shortcut = Map(now.extent, entry, plain(now.extent.channels))
            projection = None if block.projection is None else self.convolved(block.projection, shortcut)
            now = self.joined(body[-1], projection, entry)
            tape.blocks.append(BlockTape(body, projection))
        tape.last = now
        tape.head = self.convolved(self.layers.head, self.averaged(now))
        return self.logits(tape.head), tape

    def image(self, x: Tensor) -> Map:
        """The input, normalised as it is read."""
        extent = Extent(*x.shape)
        mean, std = (statistic.detach().double().flatten().numpy() for statistic in (self.net.mean, self.net.std))
        values = self.pool.take(extent.floats)
        pack(x.detach(), values.array)
        return Map(extent, values, Factors.rounded(1 / std, -mean / std))

    def convolved(self, layer: Layer, read: Map) -> Applied:
        """Apply a convolution, and take the batch's statistics where its norm is in train mode."""
        shape, kept = layer.shape(read.extent.height, read.extent.width), layer.kept
        extent = Extent(read.extent.images, shape.channels_out, shape.out_height, shape.out_width)
        geometry = shape.forward(extent.blocks)
        normed = Normed(layer.norm, shape.channels_out, layer.conv.bias)
        source = self._first_source(read)
        values, sums = self.pool.take(extent.floats), geometry.sums(self.pool, extent.blocks) if normed.batch else None
        out = Sink(values.address, 0, 0, address(sums), 0, 0, extent.past)
        lists = kept.lists(shape, geometry, backward=False, break_even=calibration().break_even)
        sweep(self.pool, source, lists, geometry, out, extent.blocks)
        if sums is not None:
            totals = add_up(sums.array, geometry.slots, shape.channels_out, extent.images)
            normed.learn(totals, extent.images * extent.height * extent.width)
        if not self.keep:
            read.release()
        return Applied(layer, kept, shape, read, extent, values, normed)

    def normed(self, applied: Applied) -> Map:
        """ReLU of a layer's batch norm."""
        factors = Factors.rounded(*applied.normed.forward())
        return Map(applied.extent, self._values(applied), factors, relu=True, origins=(applied,))

    def joined(self, applied: Applied, projection: Applied | None, entry: Buffer) -> Map:
        """ReLU of the sum of a block's last batch norm and its shortcut: the projection's batch norm, or the block's input."""
        scale, shift = applied.normed.forward()
        if projection is None:
            other, origins, (other_scale, other_shift) = entry, (applied,), (np.ones(len(scale)), 0.0)
        else:
            other, origins, (other_scale, other_shift) = self._values(projection), (applied, projection), projection.normed.forward()
        factors = Factors.rounded(scale, shift + other_shift, other_scale)
        return Map(applied.extent, self._values(applied), factors, other, relu=True, origins=origins)

    def _first_source(self, read: Map) -> Source:
        """How a map's first reader reads it: ReLU's bits are written down on the way."""
        if self.record and read.relu:
            read.bits = self.pool.take(read.extent.vectors, np.uint16)
        return read.source(write=True)

    def _values(self, applied: Applied) -> Buffer:
        """A layer's raw outputs, which go to their reader; the layer itself holds on to them only for gradients."""
        values = applied.values
        if not self.keep:
            applied.values = None
        return values

    def pooled(self, read: Map) -> tuple[Pooled, Map]:
        """The stem's output and its maxima."""
        e = read.extent
        extent = Extent(e.images, e.channels, (e.height + 1) // 2, (e.width + 1) // 2)
        result = self.pool.take(extent.floats)
        rows = [self.pool.take(3 * e.channels * (e.width + 3) * LANES) for _ in range(threads())]
        winners = self.pool.take(9 * extent.vectors, np.uint16) if self.record else None
        source = self._first_source(read)

        def work(thread: int, first: int, last: int) -> None:
            places = rows[thread].address, result.address, address(winners)
            max_forward(first, last, source, e.height, e.channels, e.width, *places)

        share(work, e.blocks)
        if not self.keep:
            read.release()
        return Pooled(read, winners), Map(extent, result, plain(e.channels))

    def averaged(self, read: Map) -> Map:
        """Mean over all positions."""
        e = read.extent
        extent = Extent(e.images, e.channels, 1, 1)
        means = self.pool.take(extent.floats)
        rows = [self.pool.take(e.channels * e.width * LANES) for _ in range(threads())]
        source = self._first_source(read)

        def work(thread: int, first: int, last: int) -> None:
            mean_forward(first, last, source, e.height, e.channels, e.width, rows[thread].address, means.address)

        share(work, e.blocks)
        if not self.keep:
            read.release()
        return Map(extent, means, plain(e.channels))

    def logits(self, head: Applied) -> Tensor:
        scale, shift = (torch.from_numpy(factor).float() for factor in head.normed.forward())
        return torch.addcmul(shift, unpack(head.values.array, head.extent).flatten(1), scale)
