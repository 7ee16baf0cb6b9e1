"""Asking a process to stop: by SIGTERM, as a cluster does, or by SIGINT, as Ctrl-C does."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator

SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextlib.contextmanager
def requests() -> Iterator[Callable[[], bool]]:
    """While the block lasts these signals are noted instead of ending the process; gives whether one came."""
    came: list[int] = []
    before = {number: signal.signal(number, lambda caught, _: came.append(caught)) for number in SIGNALS}
    try:
        yield lambda: bool(came)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
