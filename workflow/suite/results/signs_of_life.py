"""What jobs under way tell of themselves: the small file that a training keeps up to date, and the ends of logs."""

import json
import platform
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil

from methods.core.durations import span

KEYS = {"epochs", "steps", "done", "begun", "started", "updated", "pid", "host"}
SILENT = 180.0  # seconds without a sign of life after which a job on another machine counts as stopped
CLOCK = 2.0  # seconds by which the kernel's note of a start may be off
FAILURE = re.compile(r"^(error: |[\w.]*(Error|Exception)\b)")
READ = 20000  # bytes of a log, from its end


def progress(path: Path) -> dict[str, Any] | None:
    """How far a training is (methods/runtime/heartbeat.py); none where it does not say, or no longer."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        return told if told.keys() >= KEYS else None
    except (OSError, ValueError, AttributeError):
        return None


def alive(told: Mapping[str, Any], now: float) -> bool:
    """On this machine: whether the process is there, and not a later one that was given its number; on another: whether it was heard
    of lately."""
    if told["host"] != platform.node():
        return now - told["updated"] < SILENT
    try:
        process = psutil.Process(told["pid"])
        return process.status() != psutil.STATUS_ZOMBIE and process.create_time() <= told["updated"] + CLOCK
    except psutil.NoSuchProcess:
        return False


def epoch(told: Mapping[str, Any]) -> str:
    """epoch 2/4"""
    return f"epoch {min(told['done'] // told['steps'] + 1, told['epochs'])}/{told['epochs']}"


def position(told: Mapping[str, Any]) -> str:
    """epoch 2/4, step 5/10"""
    return f"{epoch(told)}, step {told['done'] % told['steps']}/{told['steps']}"


def left(told: Mapping[str, Any]) -> str:
    """, about 4 min left; empty while nothing is known."""
    made = told["done"] - told["begun"]
    if made <= 0:
        return ""
    ahead = told["epochs"] * told["steps"] - told["done"]
    return f", about {span(ahead * (told['updated'] - told['started']) / made)} left"


def tail(path: Path) -> list[str]:
    """The last lines of a log, without empty ones; none where there is no log."""
    try:
        with path.open("rb") as stream:
            stream.seek(max(0, path.stat().st_size - READ))
            content = stream.read().decode(errors="replace")
    except OSError:
        return []
    lines = [line.split("\r")[-1].rstrip() for line in content.splitlines()]
    return [line for line in lines if line.strip()]


def failure(lines: list[str]) -> str | None:
    """The last line that tells of a failure."""
    return next((line for line in reversed(lines[-40:]) if FAILURE.match(line)), None)
