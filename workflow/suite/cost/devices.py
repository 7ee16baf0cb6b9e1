"""How fast a device is: measured there by a probe (methods/probe.py), or assumed for a named one (workflow/config/devices.yaml)."""

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from methods.core.errors import UserError
from workflow.suite.cost.work import Work, network, passes
from workflow.suite.planning import config, schema

PARTS = ("flops", "elements", "calls")


@dataclass(frozen=True, kw_only=True)
class Device:
    """Seconds that each part of a Work takes, and until the first step; `source` says where the figures come from."""

    title: str
    source: str
    flops: float
    elements: float = 0.0
    calls: float = 0.0
    startup: float = 0.0
    measured: bool = False
    threads: int | None = None

    def seconds(self, work: Work) -> float:
        """Time of a job that does this work."""
        return self.startup + self.rate(work)

    def rate(self, work: Work) -> float:
        """Time of the work alone."""
        return sum(getattr(self, part) * getattr(work, part) for part in PARTS)


def named(name: str, folder: Path = config.CONFIG) -> Device:
    """An assumed device."""
    known = schema.read_yaml(folder / "devices.yaml")
    if name not in known:
        raise UserError(f"workflow/config/devices.yaml: no device is called '{name}'; allowed: {', '.join(known)}")
    found = known[name]
    return Device(
        title=found["title"],
        source=f"assumed: {found['efficiency']:.0%} of {found['tflops']} TFLOP/s (workflow/config/devices.yaml)",
        flops=1 / (1e12 * found["tflops"] * found["efficiency"]),
        calls=1e-6 * found["call_us"],
        startup=found["startup_s"],
    )


def probed(path: Path) -> Device:
    """The device that a probe measured."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        points, made = value["points"], value["provenance"]
        works = [passes(network(p), p["passes"], images=p["batch"], batches=1) for p in points]
        flops, elements, calls = fit(works, [p["seconds"] for p in points])
        title = made["device"] if made["device"] != "cpu" else f"{made['cpu']}, {made['threads']} thread(s)"
        startup = float(value["startup"])
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; measure with `python -m methods.probe --out {path}`, or name a device with --gpu") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path}: is not the result of a probe ({error!r}); measure again with `python -m methods.probe`") from None
    return Device(
        title=title,
        source=f"measured: {path}",
        flops=flops,
        elements=elements,
        calls=calls,
        startup=startup,
        measured=True,
        threads=made["threads"],
    )


def fit(works: Sequence[Work], seconds: Sequence[float]) -> tuple[float, ...]:
    """Seconds per unit of each part, none negative, of least squared relative error."""
    rows = np.array([[getattr(work, part) for part in PARTS] for work in works], dtype=float) / np.array(seconds)[:, None]
    scale = rows.max(0)
    best, answer = np.inf, None
    for size in range(1, len(PARTS) + 1):
        for chosen in itertools.combinations(range(len(PARTS)), size):
            part = rows[:, chosen] / scale[list(chosen)]
            found, *_ = np.linalg.lstsq(part, np.ones(len(rows)), rcond=None)
            error = float(((part @ found - 1) ** 2).sum())
            if (found >= 0).all() and error < best:
                best, answer = error, (chosen, found)
    if answer is None:
        raise ValueError("no measurement to fit")
    rates = np.zeros(len(PARTS))
    rates[list(answer[0])] = answer[1] / scale[list(answer[0])]
    return tuple(map(float, rates))
