"""Where a run computes: on the CPU, or on a GPU that no other job of this user has taken.

Jobs on one machine share its GPUs by file locks, so that each has one to itself however many are started; the kernel frees a lock when
its process ends, in whatever way. Only what CUDA_VISIBLE_DEVICES shows is taken.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import torch
from filelock import FileLock, Timeout

from methods.core import settings
from methods.core.errors import UserError

_OWN: list[FileLock] = []  # those of this process: a lock that nothing refers to is released


def kind() -> str:
    """What SUITE_DEVICE asks for, "cpu" or "cuda": auto (a GPU if there is one), cpu, or cuda (an error without one)."""
    wanted = settings.device()
    if wanted == "cuda" and not torch.cuda.is_available():
        raise UserError(
            "this scale needs a GPU and torch sees none; choose a smaller scale, or pass --config allow_cpu=true to train on the CPU"
        )
    return "cpu" if wanted == "cpu" or not torch.cuda.is_available() else "cuda"


def main() -> int:
    """Say what this machine offers: `python -m methods.runtime.device`."""
    try:
        print(kind())
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def device() -> torch.device:
    """The device that this process computes on."""
    return torch.device("cpu") if kind() == "cpu" else _own_gpu()


@cache  # one GPU per process, taken at the first call
def _own_gpu() -> torch.device:
    [index] = own_gpus(1)
    torch.cuda.set_device(index)
    return torch.device("cuda", index)


def own_gpus(count: int) -> list[int]:
    """Numbers, as torch counts, of so many GPUs that are this process's until it ends."""
    names = visible(os.environ, torch.cuda.device_count())
    taken = claim_all(names, lock_folder(os.environ), count, slots=settings.runs_per_gpu())
    _OWN.extend(lock for _, lock in taken)
    return [index for index, _ in taken]


def visible(environ: Mapping[str, str], count: int) -> list[str]:
    """Names of the GPUs that torch counts from 0, as CUDA_VISIBLE_DEVICES gives them; without it they are their numbers."""
    chosen = environ.get("CUDA_VISIBLE_DEVICES")
    names = [str(i) for i in range(count)] if chosen is None else [name.strip() for name in chosen.split(",")]
    return names[:count]  # CUDA ignores everything from the first wrong name on


def lock_folder(environ: Mapping[str, str]) -> Path:
    """Where this user's jobs meet. Inside a SLURM job the same number may be another GPU than outside, so that has a folder of its own."""
    job = environ.get("SLURM_JOB_ID")
    return Path(tempfile.gettempdir()) / f"suite-gpus-{os.getuid()}{f'-{job}' if job else ''}"


def claim(names: Sequence[str], folder: Path, *, pause: float = 1.0) -> tuple[int, FileLock]:
    """Wait for a free GPU; returns its position in `names` and a lock that holds it until released or until the process ends."""
    return claim_all(names, folder, 1, pause=pause)[0]


def claim_all(names: Sequence[str], folder: Path, count: int, *, slots: int = 1, pause: float = 1.0) -> list[tuple[int, FileLock]]:
    """Wait until `count` GPUs are free at once. None is kept meanwhile, so that two jobs cannot each hold what the other needs.

    A GPU is free while fewer than `slots` jobs have it; empty ones are taken first. A job has any GPU once.
    """
    if count > len(names):
        raise UserError(f"this run asks for {count} GPUs and torch sees {len(names)}; see 'gpus_per_run' in workflow/config/suite.yaml")
    waiting = False
    while True:
        held: dict[int, FileLock] = {}
        for slot in range(slots):
            for index, name in enumerate(names):
                if index not in held and (lock := _lock(folder, f"{name}-{slot}" if slot else name)) is not None:
                    held[index] = lock
                    if len(held) == count:
                        return list(held.items())
        for lock in held.values():
            lock.release()
        if not waiting:
            print(f"waiting: other jobs hold the GPUs {', '.join(names)} ({folder})", file=sys.stderr, flush=True)
            waiting = True
        time.sleep(pause)


def _lock(folder: Path, name: str) -> FileLock | None:
    """The lock of a GPU, taken, or None if another job has it."""
    lock = FileLock(folder / re.sub(r"[^\w-]", "_", name), timeout=0, mode=0o600, thread_local=False, fallback_to_soft=False)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock.acquire()
    except Timeout:
        return None
    except OSError as error:
        raise UserError(f"{folder}: GPU locks cannot be kept there ({error.strerror}); set TMPDIR to a folder you can write to") from None
    return lock


if __name__ == "__main__":
    sys.exit(main())
