"""Files of tensors: the deployable model, and the state handed to child runs.

Nothing is loaded with pickle. A model file is strict: a missing, surplus, misshapen or non-finite tensor is an error that names it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from msgspec import structs
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from methods.core import closed
from methods.core.errors import UserError
from methods.core.files import write
from methods.networks.arguments import Residual, Zoo
from methods.networks.foreign import Foreign, architecture
from methods.networks.resnet import Net, build

FORMAT = 1


def save_model(net: Net, spec: dict, path: Path, tensors: dict[str, Tensor] | None = None) -> str:
    """Write a network (or `tensors` of its shape) as a model file; returns its SHA-256.

    A pruned weight may be -0.0, which computes as 0.0 does and is written as such: equal networks have equal files.
    """
    tensors = {name: t + 0.0 if t.is_floating_point() else t for name, t in (tensors or net.state_dict()).items()}
    about = {"format": FORMAT, "network": net.arguments, "spec": spec}
    # One key: safetensors writes several in random order, and equal runs should leave equal bytes.
    metadata = {"suite": json.dumps(about, sort_keys=True, separators=(",", ":"))}
    return save_tensors(tensors, path, metadata)


def save_tensors(tensors: dict[str, Tensor], path: Path, metadata: dict[str, str] | None = None) -> str:
    """Write tensors as safetensors, atomically; returns the SHA-256 of the file."""
    payload = save({name: t.detach().cpu().contiguous() for name, t in tensors.items()}, metadata)
    write(path, payload)
    return hashlib.sha256(payload).hexdigest()


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors of a safetensors file, and what the suite wrote about them (format, network, spec)."""
    try:
        with safe_open(path, framework="pt") as file:
            about = json.loads((file.metadata() or {}).get("suite", "{}"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except (SafetensorError, OSError, ValueError) as error:
        raise UserError(f"{path}: not a complete safetensors file ({error}); if a run made it, delete it and run again") from None
    except RecursionError:
        raise UserError(f"{path}: what stands in it about its network is nested too deeply; it is damaged") from None
    if not isinstance(about, dict):
        raise UserError(f"{path}: what stands in it about its network is a {type(about).__name__}, not a mapping; it is damaged")
    return tensors, about


def load_model(path: Path) -> Net | Foreign:
    """The network of a model file, in eval mode."""
    tensors, about = load_tensors(path)
    if about.get("format") != FORMAT:
        raise UserError(f"{path}: not a model file of this suite (format {about.get('format')!r}, expected {FORMAT})")
    if "network" not in about:
        raise UserError(f"{path}: the key 'network', which says what to build, is missing; it is damaged")
    net = rebuild(about["network"], tensors, path)
    fill(net, tensors, str(path))
    return net.eval()


def rebuild(arguments: Any, tensors: dict[str, Tensor], path: Path) -> Net | Foreign:
    """The network that a model file describes, without its weights. Nothing is allocated that the file's tensors do not fit."""
    if isinstance(arguments, dict) and "robustbench" in arguments:
        listed = closed.parse(arguments, Zoo, source=path, at="network").robustbench
        return architecture(listed.model, listed.dataset, listed.threat)
    wanted = structs.asdict(closed.parse(arguments, Residual, source=path, at="network"))
    with torch.device("meta"):
        check_shapes(build(**wanted).state_dict(), tensors, str(path))
    return build(**wanted)


def sound(name: str, tensor: Tensor) -> Tensor:
    """Which entries are numbers that a network can work with: finite ones, and a variance that overflowed.

    Weights of a channel whose variance was once zero can grow without bound behind a batch norm, which divides them away again; a running
    variance of infinity silences that channel and is what the network was validated with.
    """
    overflowed = tensor == torch.inf if name.endswith("running_var") else torch.zeros_like(tensor, dtype=torch.bool)
    return torch.isfinite(tensor) | overflowed


def check_shapes(expected: Mapping[str, Tensor], tensors: Mapping[str, Tensor], where: str) -> None:
    """The same names, and tensors of the same shapes."""
    for kind, names in (("misses", expected.keys() - tensors.keys()), ("has surplus", tensors.keys() - expected.keys())):
        if names:
            raise UserError(f"{where}: {kind} {len(names)} tensor(s): {', '.join(sorted(names)[:5])}; it is of another network")
    for name, tensor in tensors.items():
        if tensor.shape != expected[name].shape:
            raise UserError(f"{where}: tensor '{name}' has shape {tuple(tensor.shape)}, the network needs {tuple(expected[name].shape)}")


def fill(net: torch.nn.Module, tensors: dict[str, Tensor], where: str) -> None:
    """Copy tensors into a network, strictly: same names, same shapes, all `sound`."""
    expected = net.state_dict()
    check_shapes(expected, tensors, where)
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not bool(sound(name, tensor).all()):
            raise UserError(f"{where}: tensor '{name}' holds NaN or infinity; the training diverged or the file is damaged")
        expected[name].copy_(tensor)
