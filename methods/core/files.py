"""Files that are either complete or absent: written beside their final name, flushed to disk, then renamed over it."""

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary sibling to write to; it becomes `path` when the block ends well and vanishes otherwise."""
    path = Path(path)
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):  # another process has removed the empty folder in between
            handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
            break
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        # mkstemp makes files private; a result should be as readable as any other file of this user.
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        _sync(temporary)
        temporary.replace(path)
        _sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def scratch_folder(parent: Path) -> Iterator[Path]:
    """A hidden temporary folder under `parent` (same file system, so its contents can be renamed into place)."""
    parent = Path(parent)
    parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=".partial-", dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def write(path: Path, content: str | bytes) -> None:
    """Write text or bytes at once, or not at all."""
    with replacing(path) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


def write_json(path: Path, value: Any) -> None:
    """Readable JSON with sorted keys; NaN and infinity are refused, since other readers do not take them."""
    write(path, json.dumps(value, indent=2, sort_keys=True, allow_nan=False) + "\n")


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
