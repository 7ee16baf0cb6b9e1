"""What made a result: code, versions, hardware."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy
import torch

from methods.core import fingerprint, revision


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.processor())


def provenance(device: torch.device, files: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Code version, library versions and hardware of this process.

    `files` (methods.core.fingerprint) are the hashes of the code behind a result, taken when its process started: by its end somebody may
    have edited them. Anyone can tell from them later which have changed since (workflow/suite/results/stale.py).
    """
    code = {} if files is None else {"source": fingerprint.combined(files), "files": dict(files)}
    return {
        **code,
        "git": revision.head(),
        "dirty": revision.dirty(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "host": platform.node(),
        "cpu": _processor(),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "threads": torch.get_num_threads(),
        "slurm_job": os.environ.get("SLURM_JOB_ID"),
    }
