"""Every network that a Run may ask for, as counts: layers, multiplications, elements of its feature maps. No tensors.

The same architectures as methods/models.py, which tests hold against this file.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from workflow.suite import resnet
from workflow.suite.resnet import Layer

FULL, DEEP, SHALLOW = (64, 128, 256, 512), (3, 4, 6, 3), (2, 2, 2, 2)
# Blocks per stage, channels per stage, whether blocks are bottlenecks.
ARCHS = {
    "rn18": (SHALLOW, FULL, False),
    "rn34": (DEEP, FULL, False),
    "rn50": (DEEP, FULL, True),
    "small_rn34_p00": (DEEP, (26, 26, 26, 26), False),
    "small_rn34_p01": (DEEP, (23, 25, 27, 29), False),
    "small_rn34_p05": (DEEP, (14, 20, 29, 40), False),
    "small_rn34_p10": (DEEP, (6, 13, 26, 51), False),
    "small_rn18_p01": (SHALLOW, (23, 25, 27, 29), False),
    "small_rn18_p10": (SHALLOW, (6, 13, 26, 51), False),
    "small_rn50_p01": (DEEP, (23, 25, 27, 31), True),
    "small_rn50_p10": (DEEP, (7, 13, 26, 51), True),
}


@dataclass(frozen=True, kw_only=True)
class Network:
    """The layers of a network, and what one forward pass of one image takes."""

    layers: tuple[Layer, ...]

    @cached_property
    def flops(self) -> int:
        """A multiplication and an addition per weight and output position."""
        return sum(2 * layer.weights * layer.size**2 for layer in self.layers)

    @cached_property
    def elements(self) -> int:
        """Of all layers' outputs: what batch norm and the activation go through."""
        return sum(layer.channels_out * layer.size**2 for layer in self.layers)

    @cached_property
    def weights(self) -> int:
        return sum(layer.weights for layer in self.layers)

    @cached_property
    def factor_flops(self) -> int:
        """Of making every weight from two factors of full rank (ATMC), once: out x rank times rank x inputs."""
        total = 0
        for layer in self.layers:
            inputs = layer.channels_in * layer.kernel**2
            total += 2 * layer.channels_out * min(layer.channels_out, inputs) * inputs
        return total


def of(spec: Mapping, *, classes: int, image: int) -> Network:
    """The network of a Run on images of this side."""
    blocks, channels, bottleneck = ARCHS[spec["arch"]]
    if (width := spec.get("width", 1)) != 1:
        channels = tuple(max(4, 4 * round(count * width / 4)) for count in channels)
    shape = {"blocks": blocks, "channels": channels, "bottleneck": bottleneck, "classes": classes, "image": image}
    return Network(layers=tuple(resnet.layers(shape)))
