"""Residual networks of the paper: CIFAR and ImageNet stems, full-size and "small" widths, optional last batch norm.

Post-activation ResNets whose classifier is a bias-free 1x1 convolution, so that every linear map of the network is a convolution and
can be pruned alike (paper, appendix D.1; 21 265 088 weights for RN34 with 10 classes). Input normalisation is the first operation of the
network: images and perturbations live in [0, 1].
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from methods.core import architectures
from methods.core.architectures import STEMS, Arch, Conv, blocks_of, features, shape_of, stem_conv
from methods.core.errors import UserError


def _conv(shape: Conv) -> nn.Conv2d:
    padding = (shape.kernel - 1) // 2
    return nn.Conv2d(shape.channels_in, shape.channels_out, shape.kernel, shape.stride, padding=padding, bias=False)


class Block(nn.Module):
    """A residual block of any shape: convolutions with their norms, and a projection where the shortcut needs one."""

    def __init__(self, shape: architectures.Block, *, affine: bool):
        super().__init__()
        self.convs = nn.ModuleList(_conv(conv) for conv in shape.body)
        self.norms = nn.ModuleList(nn.BatchNorm2d(conv.channels_out, affine=affine) for conv in shape.body)
        self.projection = self.projection_norm = None
        if shape.projection is not None:
            self.projection = _conv(shape.projection)
            self.projection_norm = nn.BatchNorm2d(shape.projection.channels_out, affine=affine)

    def forward(self, x: Tensor) -> Tensor:
        out = x
        for i, (conv, norm) in enumerate(zip(self.convs, self.norms, strict=True)):
            out = norm(conv(out))
            if i + 1 < len(self.convs):
                out = F.relu(out, inplace=True)
        shortcut = x if self.projection is None else self.projection_norm(self.projection(x))
        return F.relu(out + shortcut, inplace=True)


class Net(nn.Module):
    """The network; `arguments`, set by `build`, rebuild it.

    `lowered`, it computes in bfloat16 up to its classifier. An `engine` computes in place of `compute` (methods/sparse/choice.py),
    and may leave out gradients that training does not use: a convolution in `places` needs those of the weights that its mask names.
    """

    lowered = False
    engine: Callable[[Tensor], Tensor] | None = None

    def __init__(
        self, shape: Arch, *, classes: int, stem: str = "cifar", lbn: bool = False, bn_affine: bool = False, head_bias: bool = False
    ):
        super().__init__()
        self.arguments: dict[str, str | int | float | bool] = {}
        self.places: dict[nn.Module, Tensor] = {}
        affine = bn_affine
        self.register_buffer("mean", torch.zeros(1, 3, 1, 1))
        self.register_buffer("std", torch.ones(1, 3, 1, 1))
        self.stem = _conv(stem_conv(shape, stem))
        self.stem_norm = nn.BatchNorm2d(self.stem.out_channels, affine=affine)
        self.pool = nn.MaxPool2d(3, 2, padding=1) if stem == "imagenet" else None
        self.blocks = nn.Sequential(*(Block(block, affine=affine) for block in blocks_of(shape)))
        self.head = nn.Conv2d(features(shape), classes, 1, bias=head_bias)
        # The last batch norm is of the same kind as the others: affine only where they are.
        self.last_norm = nn.BatchNorm2d(classes, affine=affine) if lbn else None

    def forward(self, x: Tensor) -> Tensor:
        return self.compute(x) if self.engine is None else self.engine(x)

    def compute(self, x: Tensor) -> Tensor:
        """The logits by torch's own operations."""
        x = (x - self.mean) / self.std
        with torch.autocast(x.device.type, torch.bfloat16, cache_enabled=False) if self.lowered else nullcontext():
            x = F.relu(self.stem_norm(self.stem(x)), inplace=True)
            if self.pool is not None:
                x = self.pool(x)
            x = self.blocks(x)
        x = x.mean((2, 3), keepdim=True, dtype=self.head.weight.dtype)
        x = self.head(x)
        if self.last_norm is not None:
            x = self.last_norm(x)
        return x.flatten(1)

    def convs(self) -> list[tuple[str, nn.Conv2d]]:
        """Every convolution: stem; per block its body, then its projection; classifier. The order breaks ties in the allocation."""
        convs = [("stem", self.stem)]
        for b, block in enumerate(self.blocks):
            convs += [(f"blocks.{b}.convs.{i}", conv) for i, conv in enumerate(block.convs)]
            if block.projection is not None:
                convs.append((f"blocks.{b}.projection", block.projection))
        return [*convs, ("head", self.head)]

    def norms(self) -> list[nn.BatchNorm2d]:
        """Every batch norm, in the order of the convolution that it follows."""
        norms = [self.stem_norm]
        for block in self.blocks:
            norms += [*block.norms] + ([block.projection_norm] if block.projection_norm is not None else [])
        return norms + ([self.last_norm] if self.last_norm is not None else [])


def build(
    arch: str,
    *,
    classes: int,
    stem: str = "cifar",
    width: float = 1.0,
    lbn: bool = False,
    bn_affine: bool = False,
    head_bias: bool = False,
    mean: tuple[float, ...] | None = None,
    std: tuple[float, ...] | None = None,
) -> Net:
    """A freshly built network with PyTorch's default weights; `mean` and `std` normalise its input (none: images as they are)."""
    if stem not in STEMS:
        raise UserError(f"unknown 'stem: {stem}'; allowed: {', '.join(STEMS)}")
    options = {"classes": classes, "stem": stem, "lbn": lbn, "bn_affine": bn_affine, "head_bias": head_bias}
    net = Net(shape_of(arch, width), **options)
    net.arguments = {"arch": arch, "width": width, **options}
    if mean is not None:
        net.mean.copy_(torch.tensor(mean).view(1, 3, 1, 1))
        net.std.copy_(torch.tensor(std).view(1, 3, 1, 1))
    return net


def memory_format(net: nn.Module) -> torch.memory_format:
    """channels_last, except where oneDNN of the CPU build of torch 2.13 has been seen to crash in it.

    Those are convolutions with 5, 6 or 7 channels, strided 1x1 ones with up to 8 input channels on 56x56 maps (ImageNet stem), and weight
    gradients of layers with fewer than 16 channels on several threads.
    """
    convs = [m for m in net.modules() if isinstance(m, nn.Conv2d)]
    odd = {c for m in convs for c in (m.in_channels, m.out_channels)} & {5, 6, 7}
    large = any(isinstance(m, nn.MaxPool2d) for m in net.modules())
    thin = large and any(m.kernel_size == (1, 1) and m.stride != (1, 1) and m.in_channels <= 8 for m in convs)
    narrow = torch.get_num_threads() > 1 and any(3 < m.in_channels < 16 for m in convs)
    return torch.contiguous_format if odd or thin or narrow else torch.channels_last
