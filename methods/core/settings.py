"""The environment variables of the suite: read here and nowhere else. None of them changes what a Run is, so none is part of its spec.

SUITE_DEVICE        auto (default: a GPU if there is one), cpu, cuda (an error without one)
SUITE_ENGINE        auto (default), dense, sparse: how a network of many zeros is computed; compiled: any network in training, by
                    torch.compile (tested on CPUs, never tried on a GPU)
SUITE_DATA_ROOT     the folder of data sets, where no --data-root is given
SUITE_SAVE_EVERY    seconds between two states of a training that a killed one goes on from; default 300
SUITE_GPUS_PER_RUN  JSON, data set -> devices that train one of its Runs together; default {}, one each
SUITE_RUNS_PER_GPU  how many jobs share a GPU; default 1
SUITE_IMITATE_BF16  1: a CPU without bfloat16 units trains in bfloat16 all the same, slower than in float32; default 0: it refuses
SUITE_WARM          1: short jobs share a process that has torch loaded (methods/warm.py); default 0
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path

from methods.core.errors import UserError

DEVICE, ENGINE, DATA_ROOT = "SUITE_DEVICE", "SUITE_ENGINE", "SUITE_DATA_ROOT"
SAVE_EVERY, GPUS_PER_RUN, WARM = "SUITE_SAVE_EVERY", "SUITE_GPUS_PER_RUN", "SUITE_WARM"
RUNS_PER_GPU, IMITATE_BF16 = "SUITE_RUNS_PER_GPU", "SUITE_IMITATE_BF16"

DEVICES = ("auto", "cpu", "cuda")
ENGINES = ("auto", "dense", "sparse", "compiled")
SECONDS = 300.0


def device(environ: Mapping[str, str] = os.environ) -> str:
    """One of DEVICES."""
    return _choice(DEVICE, DEVICES, environ)


def engine(environ: Mapping[str, str] = os.environ) -> str:
    """One of ENGINES."""
    return _choice(ENGINE, ENGINES, environ)


def data_root(environ: Mapping[str, str] = os.environ) -> Path | None:
    """The folder of data sets, if one is named."""
    text = environ.get(DATA_ROOT)
    return Path(text) if text else None


def save_every(environ: Mapping[str, str] = os.environ) -> float:
    """Seconds between saved states."""
    text = environ.get(SAVE_EVERY, str(SECONDS))
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not seconds >= 0:
        raise UserError(f"{SAVE_EVERY}={text}: must be a number of seconds, 0 or more")
    return seconds


def gpus_per_run(environ: Mapping[str, str] = os.environ) -> dict[str, int]:
    """Data set -> how many devices train one of its Runs together."""
    text = environ.get(GPUS_PER_RUN, "{}")
    try:
        counts: dict[str, int] = json.loads(text)
        valid = all(isinstance(count, int) and not isinstance(count, bool) and count >= 1 for count in counts.values())
    except (ValueError, AttributeError):
        valid = False
    if not valid:
        raise UserError(f'{GPUS_PER_RUN}={text}: must be JSON such as {{"imagenet100": 4}}')
    return counts


def runs_per_gpu(environ: Mapping[str, str] = os.environ) -> int:
    """How many jobs may share a GPU."""
    text = environ.get(RUNS_PER_GPU) or "1"
    if not text.isdecimal() or int(text) < 1:
        raise UserError(f"{RUNS_PER_GPU}={text}: must be a whole number, 1 or more")
    return int(text)


def imitate_bf16(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether a CPU may imitate bfloat16 units that it has not."""
    return _choice(IMITATE_BF16, ("0", "1"), environ) == "1"


def warm(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether short jobs share a process."""
    return _choice(WARM, ("0", "1"), environ) == "1"


def _choice(name: str, allowed: tuple[str, ...], environ: Mapping[str, str]) -> str:
    """The value of a variable; the first allowed one where it is not set, or empty."""
    value = environ.get(name) or allowed[0]
    if value not in allowed:
        raise UserError(f"{name}={value}: allowed: {', '.join(allowed)}")
    return value
