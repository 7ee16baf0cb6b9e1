"""The network in a compact file."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import torch
from msgspec import structs
from torch import Tensor

from methods.core.errors import UserError
from methods.core.signs import LAW, signs
from methods.networks.compact import mask, planes, values
from methods.networks.compact.coder import Decoder
from methods.networks.compact.container import Header, Layer, check_size, damaged, parse
from methods.networks.model_file import fill
from methods.networks.resnet import Net, build

MOST_BYTES = 1 << 29


def read(path: Path) -> tuple[Net, Header]:
    """The network of a compact file, in eval mode, and what the file says of it."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from error
    if len(content) > MOST_BYTES:
        raise UserError(f"{path}: has more than {MOST_BYTES} bytes, which no compact network has")
    net, header = decode(content, str(path))
    if header.half:
        warnings.warn(f"{path}: its weights were rounded to float16 when it was packed", stacklevel=2)
    return net, header


def decode(content: bytes, where: str) -> tuple[Net, Header]:
    """The network in a file's bytes; UserError names what is wrong with them."""
    header, sections = parse(content, where)
    if header.law not in (None, LAW):
        raise UserError(f"{where}: draws signs by the law {header.law!r}, and this program knows '{LAW}'; get the matching program")
    try:
        check_size(header.network)
        with torch.device("meta"):
            net = build(**structs.asdict(header.network))
        net.to_empty(device="cpu")
        tensors = _tensors(net, header, sections)
    except (ValueError, OverflowError) as error:
        raise damaged(where, str(error)) from error
    fill(net, tensors, where)
    return net.eval(), header


def _tensors(net: Net, header: Header, sections: list[bytes]) -> dict[str, Tensor]:
    """Every tensor of the network; ValueError where header and sections do not agree."""
    convs, state = net.convs(), net.state_dict()
    if len(header.layers) != len(convs):
        raise ValueError(f"{len(header.layers)} layers for a network of {len(convs)}")
    for (name, conv), layer in zip(convs, header.layers, strict=True):
        if layer.kept > conv.weight.numel():
            raise ValueError(f"{layer.kept} weights kept in layer {name} of {conv.weight.numel()}")
    weights = {f"{name}.weight" for name, _ in convs}
    others = {name: t for name, t in state.items() if name not in weights}
    floats = {name: t for name, t in others.items() if t.is_floating_point()}
    told = [_told(layer) for layer in header.layers]
    numbers = planes.unpacked(sections[2], sum(told) + sum(t.numel() for t in floats.values()), "f4")
    real = planes.unpacked(sections[1], sum(layer.kept for layer in header.layers if layer.values == "real"), "f2" if header.half else "f4")
    coder, tensors = Decoder(sections[0]), {}
    place = real_place = 0
    for (name, conv), layer, count in zip(convs, header.layers, told, strict=True):
        reals = real[real_place : real_place + layer.kept] if layer.values == "real" else None
        tensors[f"{name}.weight"] = _weight(coder, name, conv.weight.shape, layer, numbers[place : place + count], reals, header.seed)
        place, real_place = place + count, real_place + (0 if reals is None else layer.kept)
    coder.finish()
    for name, tensor in floats.items():
        tensors[name] = torch.from_numpy(numbers[place : place + tensor.numel()].reshape(tuple(tensor.shape)))
        place += tensor.numel()
    whole = [name for name in others if name not in floats]
    if len(whole) != len(header.batches):
        raise ValueError(f"{len(header.batches)} counts of batches for {len(whole)} batch norms")
    return tensors | {name: torch.tensor(count) for name, count in zip(whole, header.batches, strict=True)}


def _told(layer: Layer) -> int:
    """How many numbers say what the values of a layer are."""
    if (layer.values == "codebook") != (layer.levels > 0) and layer.kept:
        raise ValueError(f"{layer.levels} values of kind {layer.values}")
    return 1 if layer.values == "law" else layer.levels


def _weight(
    coder: Decoder, name: str, shape: torch.Size, layer: Layer, numbers: np.ndarray, reals: np.ndarray | None, seed: int | None
) -> Tensor:
    out, inputs, height, width = shape
    kept = mask.code(coder, (out, inputs, height * width), layer.kept, (layer.rows, layer.columns)).reshape(-1)
    weight = np.zeros(kept.size, np.float32)
    if layer.values == "law":
        if seed is None:
            raise ValueError("signs by a law without a seed")
        weight[kept] = signs(seed, name, kept.size)[kept] * numbers[0]
    elif layer.values == "codebook":
        weight[kept] = numbers[values.code(coder, layer.kept, layer.levels)]
    else:
        assert reals is not None
        weight[kept] = reals
    return torch.from_numpy(weight.reshape(tuple(shape)))
