"""How kernels are compiled: ahead of their first use per argument types, kept on disk where a folder can be written."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import numba


def cache_folder() -> Path | None:
    """Where this room keeps what is worth keeping between processes; none where nothing can be written.

    Named by the room's own sources: numba notices a changed kernel, but not a change in what the kernel calls.
    """
    base = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(file.read_bytes())
    try:
        folder = Path(base).expanduser() / "robust-binary-subnets" / digest.hexdigest()[:16]
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except (OSError, RuntimeError):  # RuntimeError: no home
        return None
    return folder


FOLDER = cache_folder()
if FOLDER is not None:
    numba.config.CACHE_DIR = str(FOLDER)


def kernel(function: Callable) -> Callable:
    """Compiled without Python's lock, so that threads of Python share the work (threads.py); numba's own threads are never started."""
    return numba.njit(function, nogil=True, boundscheck=False, error_model="numpy", cache=FOLDER is not None)
