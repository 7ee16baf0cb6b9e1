"""A network of methods/networks/resnet.py as a list of operations on the planes of one image, for images of one size.

Batch norm (by its running statistics), shortcut and ReLU belong to the convolution before them: they happen when its results are written.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from methods.latency.kernels import CONVOLVE, MAXIMA, MEANS, SPLIT, Operation, run
from methods.latency.plane import Plane
from methods.latency.taps import reach, taps
from methods.latency.workspace import Kind, Layout, Map
from methods.networks.resnet import Block, Net

FIELDS = np.dtype([(name, np.int64) for name in Operation._fields])


def factors(conv: nn.Conv2d, norm: nn.BatchNorm2d | None) -> tuple[np.ndarray, np.ndarray]:
    """What a convolution's results are multiplied by and what is added to them: its bias, and the batch norm after it in eval mode."""
    scale, shift = torch.ones(conv.out_channels, dtype=torch.float64), torch.zeros(conv.out_channels, dtype=torch.float64)
    if conv.bias is not None:
        shift += conv.bias.detach()
    if norm is not None:
        scale /= (norm.running_var.double() + norm.eps).sqrt()
        if norm.affine:
            scale *= norm.weight.detach()
        shift = (shift - norm.running_mean) * scale + (norm.bias.detach() if norm.affine else 0)
    return scale.float().numpy(), shift.float().numpy()


class Program:
    """The operations of a network with the weights that it has now; `workspace` makes what one image at a time is computed in."""

    def __init__(self, net: Net, height: int, width: int):
        self.layout = Layout()
        self.operations: list[Operation] = []
        self.held: list[np.ndarray] = []  # what the operations have addresses of
        self.masks: dict[Plane, np.ndarray] = {}
        mean, std = (statistic.double().view(3, 1, 1).numpy() for statistic in (net.mean, net.std))
        self.scale, self.shift = (1 / std).astype(np.float32), (-mean / std).astype(np.float32)
        self.image = self.layout.take(Kind(Plane(height, width), 3))
        first = self.image if net.stem.stride[0] == 1 else self.split(self.image, reach(net.stem.kernel_size[0], 2))
        now = self.convolved(net.stem, net.stem_norm, first)
        if net.pool is not None:
            now = self.pooled(now)
        for block in net.blocks:
            now = self.block(block, now)
        self.logits = self.convolved(net.head, net.last_norm, self.averaged(now), relu=False)
        self.table = np.array(self.operations, FIELDS)

    def block(self, block: Block, entry: Map) -> Map:
        """Its convolutions; the last one adds what comes over the shortcut. A stride of 2 is that of the projection and of one of them."""
        now, shortcut, used = entry, entry, [entry]
        halves = None
        if block.projection is not None:
            if block.projection.stride[0] == 2:
                halves = self.split(entry)
                used.append(halves)
            shortcut = self.convolved(block.projection, block.projection_norm, halves or entry, relu=False)
            used.append(shortcut)
        for i, (conv, norm) in enumerate(zip(block.convs, block.norms, strict=True)):
            if conv.stride[0] == 2 and now is entry:
                now = halves
            elif conv.stride[0] == 2:
                now = self.split(now)
                used.append(now)
            now = self.convolved(conv, norm, now, shortcut if i == len(block.convs) - 1 else None)
            used.append(now)
        self.layout.give_back(*used[:-1])
        return now

    def convolved(self, conv: nn.Conv2d, norm: nn.BatchNorm2d | None, read: Map, shortcut: Map | None = None, *, relu: bool = True) -> Map:
        """A convolution of planes whose like it makes; where its stride is 2, of planes that were split."""
        plane = read.plane
        target = self.layout.take(Kind(plane, conv.out_channels))
        arrays = [*taps(conv.weight.detach().numpy(), plane, conv.stride[0]), *factors(conv, norm), self._mask(plane)]
        self.held += arrays
        addresses = dict(zip(("start", "offset", "factor", "scale", "shift", "mask"), (a.ctypes.data for a in arrays), strict=True))
        added = -1 if shortcut is None else shortcut.place
        self._add(CONVOLVE, read, target, conv.out_channels, vectors=plane.vectors, shortcut=added, relu=int(relu), **addresses)
        return target

    def split(self, read: Map, border: int = 1) -> Map:
        """Each channel as four planes: of even and odd rows, of even and odd columns."""
        channels = read.kind.channels
        target = self.layout.take(Kind(read.plane.halved(border), 4 * channels, read.plane))
        self._add(SPLIT, read, target, channels)
        return target

    def pooled(self, read: Map) -> Map:
        """Maxima of 3x3 positions, every other one."""
        target = self.layout.take(Kind(read.plane.halved(1), read.kind.channels))
        self._add(MAXIMA, read, target, read.kind.channels)
        return target

    def averaged(self, read: Map) -> Map:
        """Means over all positions, as maps of one position."""
        target = self.layout.take(Kind(Plane(1, 1), read.kind.channels))
        self._add(MEANS, read, target, read.kind.channels)
        return target

    def _mask(self, plane: Plane) -> np.ndarray:
        if plane not in self.masks:
            self.masks[plane] = plane.mask()
        return self.masks[plane]

    def _add(self, kind: int, read: Map, target: Map, channels: int, **numbers: int) -> None:
        places = (read.place, read.plane.floats, read.plane.pitch, target.place, target.plane.floats, target.plane.pitch)
        self.operations.append(Operation(kind, *places, channels, read.plane.height, read.plane.width, **numbers))

    def __call__(self, image: np.ndarray, workspace: np.ndarray) -> np.ndarray:
        """The logits of one image [3, height, width]."""
        self.image.positions(workspace)[...] = image * self.scale + self.shift
        run(self.table, workspace, workspace.ctypes.data)
        return self.logits.positions(workspace).reshape(-1)
