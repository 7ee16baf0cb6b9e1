"""How long a run took: wall time, and time of the device that computed it."""

from __future__ import annotations

import time

import torch


class Stopwatch:
    """Adds up over the processes that worked at a run (a killed one counts up to the state it had saved).

    A GPU is held for the whole wall time; on the CPU the device's time is that of its cores, so it grows with busy threads and does not
    with waiting. `devices` of them work alike at the run, of which this process has one.
    """

    def __init__(self, device: torch.device, devices: int = 1):
        self.cuda, self.devices = device.type == "cuda", devices
        self.wall, self.cpu = time.monotonic(), time.process_time()
        self.before = {"wall_seconds": 0.0, "device_seconds": 0.0}

    def resume(self, before: dict[str, float] | None) -> None:
        """Add what earlier processes spent."""
        self.before = before or self.before

    def read(self) -> dict[str, float]:
        wall = time.monotonic() - self.wall
        here = {"wall_seconds": wall, "device_seconds": self.devices * (wall if self.cuda else time.process_time() - self.cpu)}
        return {name: round(self.before[name] + seconds, 3) for name, seconds in here.items()}
