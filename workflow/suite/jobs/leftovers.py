"""What a Snakemake that was killed leaves behind, and how the next one knows that nobody is at work any more.

Snakemake refuses to start where it finds its own locks, or files that it marked as being made. It cannot tell a dead owner from a living
one; the kernel can: every Snakemake of the suite holds a shared lock on one file while it lives, however it ends. Whoever gets that file
for itself alone is alone. (By `fcntl`: the locks of `filelock` that the kernel frees are exclusive ones.)
"""

import base64
import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from methods.core.sealed import Damaged
from workflow.suite.jobs import damage
from workflow.suite.planning.plan import Plan

STATE = ".snakemake"


@contextlib.contextmanager
def at_work(folder: Path, clean: Callable[[], None]) -> Iterator[bool]:
    """Hold the lock of the living; `clean` is called, and true given, where nobody else is at work in the folder."""
    (folder / STATE).mkdir(exist_ok=True)
    descriptor = os.open(folder / STATE / "at_work", os.O_CREAT | os.O_RDWR, 0o666)  # not inherited: jobs may outlive this process
    try:
        alone = _lock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if alone:
            clean()
        _lock(descriptor, fcntl.LOCK_SH)  # waits for another one that is cleaning
        yield alone
    finally:
        os.close(descriptor)


def clean(plan: Plan, folder: Path, damaged: Collection[str] = ()) -> list[str]:
    """Remove what the dead left of Snakemake's own notes; returns the finished results that they had marked as unfinished."""
    shutil.rmtree(folder / STATE / "locks", ignore_errors=True)
    kept = []
    for name, check in damage.checks_of(plan, folder).items():
        # Snakemake makes again what is marked and there. A result that proves itself by its checksum was only not heard of: the job
        # outlived its Snakemake.
        if name not in damaged and (mark := marker(folder, name)).exists():
            with contextlib.suppress(Damaged):
                check()
                mark.unlink()
                kept.append(name)
    return kept


def unfinished(folder: Path, name: str) -> None:
    """Mark a file that is there as not finished: Snakemake makes it again when something needs it."""
    path = marker(folder, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"external_jobid": None}))


def marker(folder: Path, name: str) -> Path:
    """Snakemake's mark of a file that is being made: named by the file's name in base 64, cut into folders where that is long."""
    encoded, marks = base64.urlsafe_b64encode(name.encode()).decode(), folder / STATE / "incomplete"
    size = os.pathconf(folder, "PC_NAME_MAX") - 1
    *parents, last = (encoded[i : i + size] for i in range(0, len(encoded), size))
    return marks.joinpath(*(f"@{part}" for part in parents), last)


def _lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind)
    except OSError:  # held by another; or a file system without locks, where nothing may be concluded
        return False
    return True
