"""What a file may say of a network for it to be built again: closed, so that a wrong word is one clear message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from msgspec import Meta

from methods.core.architectures import ARCHS, STEMS
from methods.core.closed import Closed

if TYPE_CHECKING:
    Arch: TypeAlias = str
    Stem: TypeAlias = str
else:
    Arch, Stem = Literal[tuple(ARCHS)], Literal[tuple(STEMS)]


class Residual(Closed, frozen=True):
    """The arguments of `methods.networks.resnet.build`, without normalisation, whose constants are tensors of the network."""

    arch: Arch
    classes: Annotated[int, Meta(ge=1, le=100_000)]
    stem: Stem = "cifar"
    width: Annotated[
        Annotated[int, Meta(gt=0, le=64)] | Annotated[float, Meta(gt=0, le=64)],
        Meta(description="a factor on the channel counts in (0, 64]"),
    ] = 1.0
    lbn: bool = False
    bn_affine: bool = False
    head_bias: bool = False


class Listed(Closed, frozen=True):
    """A network of RobustBench's zoo, by its name there."""

    model: str
    dataset: str
    threat: str


class Zoo(Closed, frozen=True):
    """The arguments of `methods.networks.foreign.architecture`."""

    robustbench: Listed
