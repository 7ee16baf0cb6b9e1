"""How fast a device is: measured there by a probe (methods/probe.py), or assumed for a named one (workflow/config/devices.yaml)."""

import itertools
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from methods.core.errors import UserError
from workflow.suite.cost.work import Work, network, passes, training_by_format
from workflow.suite.planning import config, schema
from workflow.suite.planning.spelling import hint

FORMATS = ("fp32", "bf16")
PARTS = ("flops", "elements", "calls")
# Photographs of ImageNet's size that a core reads and augments per second: what methods.bench.loader finds on a recent server.
PHOTOGRAPHS = 400.0


@dataclass(frozen=True, kw_only=True)
class Rates:
    """Seconds that each part of a Work takes in one number format; `source` says where the figures come from."""

    flops: float
    elements: float = 0.0
    calls: float = 0.0
    source: str = ""

    def seconds(self, work: Work) -> float:
        """Of computing this work."""
        return sum(getattr(self, part) * getattr(work, part) for part in PARTS)


@dataclass(frozen=True, kw_only=True)
class Device:
    """A device: its rates by number format, seconds until the first step, photographs that its host reads per second (0: not known),
    dollars per hour, gigabytes."""

    title: str
    rates: Mapping[str, Rates]
    startup: float = 0.0
    photographs: float = 0.0
    price: float | None = None
    memory_gb: float | None = None
    measured: bool = False
    threads: int | None = None

    def training(self, spec: Mapping) -> float:
        """Seconds of a training, its start among them."""
        return self.startup + sum(self.seconds(part, compute) for compute, part in training_by_format(spec).items())

    def seconds(self, work: Work, compute: str = "fp32") -> float:
        """Seconds of the work alone; photographs are read beside it, and waited for where that is slower."""
        computing = self.rates_in(compute).seconds(work)
        return max(computing, work.photographs / self.photographs) if self.photographs else computing

    def waits_for_photographs(self, spec: Mapping) -> bool:
        """Whether the host reads more slowly than the device trains."""
        parts = training_by_format(spec)
        return any(self.seconds(part, compute) > self.rates_in(compute).seconds(part) for compute, part in parts.items())

    def rates_in(self, compute: str) -> Rates:
        """The rates in a number format, or a clear error."""
        if compute not in self.rates:
            raise UserError(f"{self.title}: has no figures for 'train.compute: {compute}'; it has: {', '.join(self.rates)}")
        return self.rates[compute]


def named(name: str, folder: Path = config.CONFIG) -> Device:
    """An assumed device."""
    known = schema.read_yaml(folder / "devices.yaml")
    if name not in known:
        raise UserError(f"workflow/config/devices.yaml: no device is called '{name}'; {hint(name, known)}allowed: {', '.join(known)}")
    figures = known[name]
    return Device(
        title=figures["title"],
        rates={compute: _assumed(figures[compute], figures["call_us"]) for compute in FORMATS if compute in figures},
        startup=figures["startup_s"],
        photographs=PHOTOGRAPHS * figures["cores"],
        price=figures.get("price"),
        memory_gb=figures.get("memory_gb"),
    )


def _assumed(figures: Mapping, call_us: float) -> Rates:
    speed = figures["tflops"] * figures["efficiency"]
    source = f"assumed: {figures['efficiency']:.0%} of {figures['tflops']} TFLOP/s ({figures['source']})"
    return Rates(flops=1 / (1e12 * speed), calls=1e-6 * call_us, source=source)


def probed(path: Path) -> Device:
    """The device that a probe measured, in the formats that it was measured in."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        made = value["provenance"]
        points: dict[str, list[Mapping]] = {compute: [] for compute in FORMATS}
        for point in value["points"]:
            points[point.get("compute", "fp32")].append(point)
        rates = {compute: _fitted(some, path) for compute, some in points.items() if some or compute == "fp32"}
        title = made["device"] if made["device"] != "cpu" else f"{made['cpu']}, {made['threads']} thread(s)"
        startup, threads = float(value["startup"]), made["threads"]
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; measure with `python -m methods.probe --out {path}`, or name a device with --gpu") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path}: is not the result of a probe ({error!r}); measure again with `python -m methods.probe`") from None
    cores = threads if made["device"] == "cpu" else min(8, os.cpu_count() or 1)
    return Device(title=title, rates=rates, startup=startup, photographs=PHOTOGRAPHS * cores, measured=True, threads=threads)


def _fitted(points: Sequence[Mapping], path: Path) -> Rates:
    works = [passes(network(p), p["passes"], images=p["batch"], batches=1) for p in points]
    flops, elements, calls = fit(works, [p["seconds"] for p in points])
    return Rates(flops=flops, elements=elements, calls=calls, source=f"measured: {path}")


def fit(works: Sequence[Work], seconds: Sequence[float]) -> tuple[float, ...]:
    """Seconds per unit of each part, none negative, of least squared relative error."""
    rows = np.array([[getattr(work, part) for part in PARTS] for work in works], dtype=float) / np.array(seconds)[:, None]
    scale = rows.max(0)
    best, answer = np.inf, None
    for size in range(1, len(PARTS) + 1):
        for chosen in itertools.combinations(range(len(PARTS)), size):
            part = rows[:, chosen] / scale[list(chosen)]
            rates, *_ = np.linalg.lstsq(part, np.ones(len(rows)), rcond=None)
            error = float(((part @ rates - 1) ** 2).sum())
            if (rates >= 0).all() and error < best:
                best, answer = error, (chosen, rates)
    if answer is None:
        raise ValueError("no measurement to fit")
    chosen, rates = answer
    seconds_per = np.zeros(len(PARTS))
    seconds_per[list(chosen)] = rates / scale[list(chosen)]
    return tuple(map(float, seconds_per))
