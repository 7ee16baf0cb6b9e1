"""Files of tensors: the deployable model, the state handed to child runs, and the resumable training state.

Nothing is loaded with pickle. A model file is strict: a missing, surplus, misshapen or non-finite tensor is an error that names it.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import io
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from methods.atomic import write_bytes
from methods.errors import UserError
from methods.foreign import Foreign, architecture
from methods.models import Net, build

FORMAT = 1


def save_model(net: Net, spec: dict, path: Path, tensors: dict[str, Tensor] | None = None) -> str:
    """Write a network (or `tensors` of its shape) as a model file; returns its SHA-256."""
    tensors = tensors if tensors is not None else net.state_dict()
    about = {"format": FORMAT, "network": net.arguments, "spec": spec}
    # One key: safetensors writes several in random order, and equal runs should leave equal bytes.
    metadata = {"suite": json.dumps(about, sort_keys=True, separators=(",", ":"))}
    return save_tensors(tensors, path, metadata)


def save_tensors(tensors: dict[str, Tensor], path: Path, metadata: dict[str, str] | None = None) -> str:
    """Write tensors as safetensors, atomically; returns the SHA-256 of the file."""
    payload = save({name: t.detach().cpu().contiguous() for name, t in tensors.items()}, metadata)
    write_bytes(path, payload)
    return hashlib.sha256(payload).hexdigest()


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors of a safetensors file, and what the suite wrote about them (format, network, spec)."""
    try:
        with safe_open(path, framework="pt") as file:
            about = json.loads((file.metadata() or {}).get("suite", "{}"))
            return {name: file.get_tensor(name) for name in file.keys()}, about  # noqa: SIM118
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except (SafetensorError, OSError, ValueError) as error:
        raise UserError(f"{path}: not a complete safetensors file ({error}); if a run made it, delete it and run again") from None


def load_model(path: Path) -> Net | Foreign:
    """The network of a model file, in eval mode."""
    tensors, about = load_tensors(path)
    if about.get("format") != FORMAT:
        raise UserError(f"{path}: not a model file of this suite (format {about.get('format')}, expected {FORMAT})")
    net = rebuild(about["network"])
    fill(net, tensors, str(path))
    return net.eval()


def rebuild(arguments: dict[str, Any]) -> Net | Foreign:
    """The network that a model file describes, without its weights."""
    return architecture(**arguments["robustbench"]) if "robustbench" in arguments else build(**arguments)


def sound(name: str, tensor: Tensor) -> Tensor:
    """Which entries are numbers that a network can work with: finite ones, and a variance that overflowed.

    Weights of a channel whose variance was once zero can grow without bound behind a batch norm, which divides them away again; a running
    variance of infinity silences that channel and is what the network was validated with.
    """
    overflowed = tensor == torch.inf if name.endswith("running_var") else torch.zeros_like(tensor, dtype=torch.bool)
    return torch.isfinite(tensor) | overflowed


def fill(net: torch.nn.Module, tensors: dict[str, Tensor], where: str) -> None:
    """Copy tensors into a network, strictly: same names, same shapes, all `sound`."""
    expected = net.state_dict()
    for kind, names in (("misses", expected.keys() - tensors.keys()), ("has surplus", tensors.keys() - expected.keys())):
        if names:
            raise UserError(f"{where}: {kind} {len(names)} tensor(s): {', '.join(sorted(names)[:5])}; it is of another network")
    for name, tensor in tensors.items():
        if tensor.shape != expected[name].shape:
            raise UserError(f"{where}: tensor '{name}' has shape {tuple(tensor.shape)}, the network needs {tuple(expected[name].shape)}")
        if tensor.is_floating_point() and not bool(sound(name, tensor).all()):
            raise UserError(f"{where}: tensor '{name}' holds NaN or infinity; the training diverged or the file is damaged")
        expected[name].copy_(tensor)


class Resume:
    """The resumable state of one run: two generations of one file, each with its checksum in front, under a lock.

    A torn or corrupted newer file falls back to the older one; a state of another spec or of other code (`key`) is never resumed. Of the
    processes that train a run together one `writes` it, under the lock; the others only read.
    """

    def __init__(self, folder: Path, key: str, *, wait: float = 0.0, waiting: Callable[[], None] = lambda: None, writes: bool = True):
        """Take the lock, after `wait` seconds at the most; `waiting` is called meanwhile and may raise."""
        self.folder, self.key, self.writes = folder, key, writes
        self.files = (folder / "state.new", folder / "state.old")
        self.waited = False
        if not writes:
            return
        deadline = time.monotonic() + wait
        while not self._locked():
            if time.monotonic() >= deadline:
                raise UserError(f"{folder}: another process is training this run; wait for it or stop it")
            if not self.waited:
                print(f"{folder}: another process is training this run; waiting for it", flush=True)
            self.waited = True
            waiting()
            time.sleep(0.2)

    def _locked(self) -> bool:
        """Take the lock if it is free. A holder that ends removes the file: a lock on a file that is gone is none."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.lock = os.open(self.folder / "lock", os.O_CREAT | os.O_RDWR)
        except FileNotFoundError:  # removed between the two calls
            return False
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(self.lock).st_ino == (self.folder / "lock").stat().st_ino:
                return True
        except (BlockingIOError, FileNotFoundError):
            pass
        os.close(self.lock)
        return False

    def save(self, state: dict[str, Any]) -> None:
        if not self.writes:
            return
        buffer = io.BytesIO()
        torch.save({"key": self.key, "state": state}, buffer)
        payload = buffer.getvalue()
        new, old = self.files
        if new.exists():
            new.replace(old)
        write_bytes(new, hashlib.sha256(payload).hexdigest().encode() + payload)

    def load(self) -> dict[str, Any] | None:
        """The newest intact state of this spec and code, or nothing."""
        for file in self.files:
            if not file.exists():
                continue
            content = file.read_bytes()
            if hashlib.sha256(content[64:]).hexdigest().encode() != content[:64]:
                print(f"warning: {file} is damaged; ignored", flush=True)
                continue
            saved = torch.load(io.BytesIO(content[64:]), weights_only=True)
            if saved["key"] == self.key:
                return saved["state"]
            print(f"note: {file} belongs to another version of the code or spec; training starts anew", flush=True)
        return None

    def clear(self) -> None:
        """Remove the state once the run's results are safe."""
        if not self.writes:
            return
        # All files, since a killed process may have left a temporary one; the lock last, before one that waits can put its own there.
        for file in sorted(self.folder.iterdir(), key=lambda file: file.name == "lock"):
            file.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # one that waits may have put its lock there already
            self.folder.rmdir()
        os.close(self.lock)
