"""The state of a training under way: saved so that a killed run goes on, never resumed by other code or for another spec."""

from __future__ import annotations

import contextlib
import hashlib
import io
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock, Timeout

from methods.core.errors import UserError
from methods.core.files import write


class Resume:
    """The resumable state of one run: two generations of one file, each with its checksum in front, under a lock.

    A torn or corrupted newer file falls back to the older one; a state of another spec or of other code (`key`) is never resumed. Of the
    processes that train a run together one `writes` it, under the lock; the others only read.
    """

    def __init__(self, folder: Path, key: str, *, wait: float = 0.0, waiting: Callable[[], None] = lambda: None, writes: bool = True):
        """Take the lock, after `wait` seconds at the most; `waiting` is called meanwhile and may raise."""
        self.folder, self.key, self.writes = folder, key, writes
        self.files = (folder / "state.new", folder / "state.old")
        self.lock = FileLock(folder / "lock", timeout=0, thread_local=False, fallback_to_soft=False)  # the kernel frees it with its process
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
        """Take the lock if it is free."""
        try:
            self.lock.acquire()
        except (Timeout, FileNotFoundError):  # held; or a holder that ends has just removed the folder
            return False
        return True

    def save(self, state: dict[str, Any]) -> None:
        if not self.writes:
            return
        buffer = io.BytesIO()
        torch.save({"key": self.key, "state": state}, buffer)
        payload = buffer.getvalue()
        new, old = self.files
        if new.exists():
            new.replace(old)
        write(new, hashlib.sha256(payload).hexdigest().encode() + payload)

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
            print(f"note: {file} belongs to another version of the code or spec; training starts from the beginning", flush=True)
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
        self.lock.release()
