"""What made a result: code, versions, hardware."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import platform
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy
import torch

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("methods", "baselines")


@cache
def _digest(file: Path) -> str:
    """Hash of a file's syntax tree without docstrings; once per process, since parsing takes longer than many a small run's step."""
    tree = ast.parse(file.read_text())
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
            body[0].value.value = ""
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()[:16]


def sources() -> dict[str, str]:
    """File -> hash, for the project's modules that this process has imported; comments, docstrings and layout do not count.

    Recorded with a result, so that anyone can tell later which of the files that made it have changed (workflow/suite/stale.py).
    """
    files = {Path(m.__file__) for m in list(sys.modules.values()) if getattr(m, "__file__", None)}
    mine = sorted(f for f in files if f.parent.parent == ROOT and f.parent.name in PACKAGES)
    return {file.relative_to(ROOT).as_posix(): _digest(file) for file in mine}


def fingerprint() -> str:
    """One hash of all of `sources`."""
    return hashlib.sha256(json.dumps(sources(), sort_keys=True).encode()).hexdigest()[:16]


def _git(*words: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.processor())


def provenance(device: torch.device) -> dict[str, Any]:
    """Code version, library versions and hardware of this process."""
    status = _git("status", "--porcelain", "--untracked-files=no")
    return {
        "git": _git("rev-parse", "HEAD"),
        "dirty": None if status is None else bool(status),
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
