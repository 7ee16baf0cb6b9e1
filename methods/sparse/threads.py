"""Work shared out among threads of Python: kernels run without its lock.

numba's own threads are not used: they do not survive a fork, forbid two callers at once, and make compiling slower. Threads start at the
first use and belong to the process that started them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import torch


@cache
def _workers(process: int, count: int) -> ThreadPoolExecutor:
    """A pool of `count` threads of this process; a forked child has another process id and makes its own."""
    return ThreadPoolExecutor(count, thread_name_prefix="sparse")


def threads() -> int:
    """As many as torch would use."""
    return torch.get_num_threads()


def share(work: Callable[[int, int, int], None], pieces: int) -> None:
    """Call work(thread, first, last) so that the pieces 0 to `pieces` are done, in as many threads as there are."""
    count = max(1, min(threads(), pieces))
    bounds = [pieces * t // count for t in range(count + 1)]
    if count == 1:
        work(0, 0, pieces)
        return
    others = [_workers(os.getpid(), count - 1).submit(work, t, bounds[t], bounds[t + 1]) for t in range(1, count)]
    work(0, bounds[0], bounds[1])
    for other in others:
        other.result()
