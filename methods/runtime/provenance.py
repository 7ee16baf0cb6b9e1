"""What made a result: code, versions, hardware."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
from pathlib import Path
from typing import Any

import numpy
import torch

from methods.core import revision
from methods.core.fingerprint import file_digest
from methods.core.revision import ROOT

PACKAGES = ("methods", "baselines")


def sources() -> dict[str, str]:
    """File -> hash, for the project's modules that this process has imported; comments, docstrings and layout do not count.

    Recorded with a result, so that anyone can tell later which of the files that made it have changed (workflow/suite/results/stale.py).
    """
    files = {Path(m.__file__) for m in list(sys.modules.values()) if getattr(m, "__file__", None)}
    mine = sorted(f for f in files if f.is_relative_to(ROOT) and f.relative_to(ROOT).parts[0] in PACKAGES)
    return {file.relative_to(ROOT).as_posix(): file_digest(file) for file in mine}


def fingerprint() -> str:
    """One hash of all of `sources`."""
    return hashlib.sha256(json.dumps(sources(), sort_keys=True).encode()).hexdigest()[:16]


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.processor())


def provenance(device: torch.device) -> dict[str, Any]:
    """Code version, library versions and hardware of this process."""
    return {
        "git": revision.head(),
        "dirty": revision.dirty(),
        "source": fingerprint(),
        "files": sources(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "host": platform.node(),
        "cpu": _processor(),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "threads": torch.get_num_threads(),
        "slurm_job": os.environ.get("SLURM_JOB_ID"),
    }
