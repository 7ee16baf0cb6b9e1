"""A compact file as bytes: what it says of the network, and its sections. Everything in it is data; nothing in it is run.

    magic     4 bytes   "RBS" and the version of the format, 1
    digest   32 bytes   SHA-256 of all that follows
    length    4 bytes   of the header, little endian
    header              `Header` as JSON, compressed by zlib
    sections            coded bits, kept weights, other numbers: as long as the header says, and nothing after them

Whatever a file says, reading it takes bounded memory and time: a network has at most MOST_WEIGHTS weights, every compressed part states
how long it must be, and what is stated is checked before anything is allocated.
"""

from __future__ import annotations

import hashlib
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from methods.core.architectures import layers, shape_of
from methods.core.errors import UserError
from methods.networks.arguments import Residual
from methods.networks.compact import planes
from methods.networks.compact.mask import STRENGTHS
from methods.networks.compact.values import MOST_LEVELS

MAGIC, VERSION = b"RBS", 1
MOST_WEIGHTS = 1 << 26  # nearly three times the largest network of the paper
MOST_HEADER = 1 << 18
START = len(MAGIC) + 1 + hashlib.sha256().digest_size

Count = Annotated[int, Meta(ge=0, le=MOST_WEIGHTS)]
Rank = Annotated[int, Meta(ge=0, lt=len(STRENGTHS))]


class Layer(Struct, forbid_unknown_fields=True, frozen=True, array_like=True):
    """A convolution: how many weights it keeps, how their values are given (see methods.networks.compact.values) and how many levels
    their codebook has, and the model of its mask (see methods.networks.compact.mask): how different its rows are, and its columns."""

    kept: Count
    values: Literal["law", "codebook", "real"]
    levels: Annotated[int, Meta(ge=0, le=MOST_LEVELS)]
    rows: Rank
    columns: Rank


class Header(Struct, forbid_unknown_fields=True, frozen=True):
    """All that is said of a network besides its numbers. `half`: real weights were rounded to float16, at the user's wish."""

    network: Residual
    spec: dict[str, Any]
    layers: Annotated[list[Layer], Meta(max_length=1000)]
    batches: Annotated[list[Annotated[int, Meta(ge=0, le=1 << 62)]], Meta(max_length=1000)]
    sections: Annotated[list[Annotated[int, Meta(ge=0, le=1 << 32)]], Meta(min_length=3, max_length=3)]
    law: Annotated[str, Meta(max_length=100)] | None = None
    seed: int | None = None
    half: bool = False


def assemble(header: Header, sections: list[bytes]) -> bytes:
    """The bytes of a file; the header must already say how long the sections are."""
    head = planes.compressed(msgspec.json.encode(header))
    rest = len(head).to_bytes(4, "little") + head + b"".join(sections)
    return MAGIC + bytes([VERSION]) + hashlib.sha256(rest).digest() + rest


def parse(content: bytes, where: str) -> tuple[Header, list[bytes]]:
    """Header and sections of a file's bytes; UserError says what is wrong with them."""
    if content[: len(MAGIC)] != MAGIC:
        raise UserError(
            f"{where}: is no compact network (it does not start with {MAGIC.decode()}); `python -m methods.compact pack` makes one"
        )
    if len(content) <= len(MAGIC) or content[len(MAGIC)] != VERSION:
        other = f"version {content[len(MAGIC)]}" if len(content) > len(MAGIC) else "no version"
        raise UserError(f"{where}: is a compact network of {other}, and this program reads version {VERSION}; get the matching program")
    rest = content[START:]
    if hashlib.sha256(rest).digest() != content[len(MAGIC) + 1 : START]:
        raise damaged(where, "its contents do not have the SHA-256 that stands in it")
    try:
        length = int.from_bytes(rest[:4], "little")
        if length > len(rest) - 4:
            raise ValueError("the header is longer than the file")
        header = msgspec.json.decode(planes.inflated(rest[4 : 4 + length], MOST_HEADER), type=Header)
        if sum(header.sections) != len(rest) - 4 - length:
            raise ValueError("the sections are not as long as the header says")
    except (ValueError, RecursionError) as error:  # msgspec's errors are ValueErrors
        raise damaged(where, str(error)) from error
    sections, place = [], 4 + length
    for size in header.sections:
        sections.append(rest[place : place + size])
        place += size
    return header, sections


def check_size(network: Residual) -> None:
    """Raise ValueError for a network that no file of ours can hold, before it is built."""
    image = 224 if network.stem == "imagenet" else 32
    weights = sum(layer.weights for layer in layers(shape_of(network.arch, network.width), classes=network.classes, image=image))
    if weights > MOST_WEIGHTS:
        raise ValueError(f"a network of {weights} weights, where at most {MOST_WEIGHTS} are read")


def damaged(where: str, reason: str) -> UserError:
    """The error of a file that cannot be what it says; words of the file in it do nothing to a terminal."""
    reason = "".join(letter if letter.isprintable() else "?" for letter in reason[:300])
    return UserError(f"{where}: is damaged ({reason}); copy it again from where it came, or pack the network again")
