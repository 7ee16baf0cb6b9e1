"""Residual networks of the paper: CIFAR and ImageNet stems, full-size and "small" widths, optional last batch norm.

Post-activation ResNets whose classifier is a bias-free 1x1 convolution, so that every linear map of the network is a convolution and
can be pruned alike (paper, appendix D.1; 21 265 088 weights for RN34 with 10 classes). Input normalisation is the first operation of the
network: images and perturbations live in [0, 1].
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from methods.errors import UserError

FULL = (64, 128, 256, 512)


@dataclass(frozen=True, kw_only=True)
class Arch:
    """Block kind, blocks per stage, channels per stage (the stem has the channels of the first stage)."""

    blocks: tuple[int, int, int, int]
    channels: tuple[int, int, int, int] = FULL
    bottleneck: bool = False


RN18, RN34 = (2, 2, 2, 2), (3, 4, 6, 3)
ARCHS = {
    "rn18": Arch(blocks=RN18),
    "rn34": Arch(blocks=RN34),
    "rn50": Arch(blocks=RN34, bottleneck=True),
    # Dense networks of about 1 % of the parameters; the suffix names the pruning strategy whose layer sizes they imitate.
    "small_rn34_p00": Arch(blocks=RN34, channels=(26, 26, 26, 26)),
    "small_rn34_p01": Arch(blocks=RN34, channels=(23, 25, 27, 29)),
    "small_rn34_p05": Arch(blocks=RN34, channels=(14, 20, 29, 40)),
    "small_rn34_p10": Arch(blocks=RN34, channels=(6, 13, 26, 51)),
    "small_rn18_p01": Arch(blocks=RN18, channels=(23, 25, 27, 29)),
    "small_rn18_p10": Arch(blocks=RN18, channels=(6, 13, 26, 51)),
    "small_rn50_p01": Arch(blocks=RN34, channels=(23, 25, 27, 31), bottleneck=True),
    "small_rn50_p10": Arch(blocks=RN34, channels=(7, 13, 26, 51), bottleneck=True),
}
STEMS = ("cifar", "imagenet")


def shape_of(arch: str, width: float = 1.0) -> Arch:
    """An architecture at a width factor; reduced channel counts are multiples of 4 (odd ones crash some CPU kernels)."""
    if arch not in ARCHS:
        raise UserError(f"unknown architecture 'arch: {arch}'; allowed: {', '.join(ARCHS)}")
    if width == 1:
        return ARCHS[arch]
    if not width > 0:
        raise UserError(f"'width: {width}' must be a positive factor on the channel counts")
    return replace(ARCHS[arch], channels=tuple(max(4, 4 * round(c * width / 4)) for c in ARCHS[arch].channels))


def _conv(c_in: int, c_out: int, kernel: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(c_in, c_out, kernel, stride, padding=(kernel - 1) // 2, bias=False)


class Block(nn.Module):
    """Basic (3x3, 3x3) or bottleneck (1x1, strided 3x3, 1x1 to four times the channels) residual block."""

    def __init__(self, c_in: int, c: int, stride: int, *, bottleneck: bool, affine: bool):
        super().__init__()
        c_out = 4 * c if bottleneck else c
        shapes = [(c_in, c, 1, 1), (c, c, 3, stride), (c, c_out, 1, 1)] if bottleneck else [(c_in, c, 3, stride), (c, c, 3, 1)]
        self.convs = nn.ModuleList(_conv(*shape) for shape in shapes)
        self.norms = nn.ModuleList(nn.BatchNorm2d(shape[1], affine=affine) for shape in shapes)
        self.projection = self.projection_norm = None
        if stride != 1 or c_in != c_out:
            self.projection = _conv(c_in, c_out, 1, stride)
            self.projection_norm = nn.BatchNorm2d(c_out, affine=affine)

    def forward(self, x: Tensor) -> Tensor:
        out = x
        for i, (conv, norm) in enumerate(zip(self.convs, self.norms, strict=True)):
            out = norm(conv(out))
            if i + 1 < len(self.convs):
                out = F.relu(out, inplace=True)
        shortcut = x if self.projection is None else self.projection_norm(self.projection(x))
        return F.relu(out + shortcut, inplace=True)


class Net(nn.Module):
    """The network; `arguments`, set by `build`, rebuild it."""

    def __init__(
        self, shape: Arch, *, classes: int, stem: str = "cifar", lbn: bool = False, bn_affine: bool = False, head_bias: bool = False
    ):
        super().__init__()
        self.arguments: dict[str, str | int | float | bool] = {}
        channels, affine = shape.channels, bn_affine
        self.register_buffer("mean", torch.zeros(1, 3, 1, 1))
        self.register_buffer("std", torch.ones(1, 3, 1, 1))
        self.stem = nn.Conv2d(3, channels[0], 7, 2, padding=3, bias=False) if stem == "imagenet" else _conv(3, channels[0], 3)
        self.stem_norm = nn.BatchNorm2d(channels[0], affine=affine)
        self.pool = nn.MaxPool2d(3, 2, padding=1) if stem == "imagenet" else None
        blocks, c_in = [], channels[0]
        for stage, (count, c) in enumerate(zip(shape.blocks, channels, strict=True)):
            for i in range(count):
                stride = 2 if stage > 0 and i == 0 else 1
                blocks.append(Block(c_in, c, stride, bottleneck=shape.bottleneck, affine=affine))
                c_in = 4 * c if shape.bottleneck else c
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Conv2d(c_in, classes, 1, bias=head_bias)
        # The last batch norm is of the same kind as the others: affine only where they are.
        self.last_norm = nn.BatchNorm2d(classes, affine=affine) if lbn else None

    def forward(self, x: Tensor) -> Tensor:
        x = (x - self.mean) / self.std
        x = F.relu(self.stem_norm(self.stem(x)), inplace=True)
        if self.pool is not None:
            x = self.pool(x)
        x = self.blocks(x).mean((2, 3), keepdim=True)
        x = self.head(x)
        if self.last_norm is not None:
            x = self.last_norm(x)
        return x.flatten(1)

    def convs(self) -> list[tuple[str, nn.Conv2d]]:
        """Every convolution: stem; per block its body, then its projection; classifier. The order breaks ties in the allocation."""
        found = [("stem", self.stem)]
        for b, block in enumerate(self.blocks):
            found += [(f"blocks.{b}.convs.{i}", conv) for i, conv in enumerate(block.convs)]
            if block.projection is not None:
                found.append((f"blocks.{b}.projection", block.projection))
        return [*found, ("head", self.head)]

    def norms(self) -> list[nn.BatchNorm2d]:
        """Every batch norm, in the order of the convolution that it follows."""
        found = [self.stem_norm]
        for block in self.blocks:
            found += [*block.norms] + ([block.projection_norm] if block.projection_norm is not None else [])
        return found + ([self.last_norm] if self.last_norm is not None else [])


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
