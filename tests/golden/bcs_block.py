"""The one-block network of the BCS recordings, and their order of axes."""

from __future__ import annotations

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor, nn

from methods.core import architectures
from methods.core.architectures import Conv
from methods.networks.resnet import Block

PARTS = {  # recorded name of a layer or norm -> ours
    **{"conv1": "stem", "block.conv1": "block.convs.0", "block.conv2": "block.convs.1", "block.shortcut": "block.projection"},
    **{"bn1": "stem_norm", "block.bn1": "block.norms.0", "block.bn2": "block.norms.1", "block.bn3": "block.projection_norm"},
    "dense": "head",
}


def block_shape(before: int, width: int) -> architectures.Block:
    """A basic block without stride."""
    body = tuple(Conv(channels_in=c, channels_out=width, kernel=3) for c in (before, width))
    shortcut = None if before == width else Conv(channels_in=before, channels_out=width, kernel=1)
    return architectures.Block(stage=1, place=0, body=body, projection=shortcut)


class OneBlock(nn.Module):
    """Stem, one residual block without stride, mean over the map, linear layer with bias."""

    def __init__(self, channels: Sequence[int], classes: int):
        super().__init__()
        self.stem = nn.Conv2d(channels[0], channels[1], 3, padding=1, bias=False)
        self.stem_norm = nn.BatchNorm2d(channels[1])
        self.block = Block(block_shape(channels[1], channels[2]), affine=True)
        self.head = nn.Linear(channels[2], classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.block(F.relu(self.stem_norm(self.stem(x)))).mean((2, 3)))

    def convs(self) -> list[tuple[str, nn.Module]]:
        return [(name, self.get_submodule(name)) for name in list(PARTS.values())[:4] + ["head"] if self.has(name)]

    def has(self, name: str) -> bool:
        return name != "block.projection" or self.block.projection is not None


def first_axes(t: Tensor) -> Tensor:
    """A recorded weight (spatial, in, out) or batch (batch, spatial, channels) in our order of axes."""
    return t.permute(3, 2, 0, 1) if t.ndim == 4 else t.T


def images(t: Tensor) -> Tensor:
    return t.permute(0, 3, 1, 2).contiguous()
