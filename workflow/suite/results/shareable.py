"""A file of a Run as others get it: without the names of the machines that made it, which say nothing about a number."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from methods.core import paths, sealed

MACHINE = ("host", "slurm_job")  # of a result's provenance
OCCASION = ("started", "wall_seconds", "device_seconds", "git", "dirty")  # of the same; hashes say what the code was


def contents(path: Path) -> dict[str, Any]:
    """What a JSON file of a Run says; all but the spec are sealed, and refused where they are damaged."""
    if path.name == paths.SPEC:
        return json.loads(path.read_text(encoding="utf-8"))
    return sealed.read(path)


def shared(path: Path) -> bytes:
    """The bytes for others; those of the file itself where it names no machine."""
    if path.suffix != ".json":
        return path.read_bytes()
    mine = contents(path)
    rest = without_machine(mine)
    if rest == mine:
        return path.read_bytes()
    return (json.dumps(rest | {"sha256": sealed.digest(rest)}, indent=2, sort_keys=True, allow_nan=False) + "\n").encode()


def same(path: Path, theirs: bytes) -> bool:
    """Whether a file says what bytes from elsewhere say, but for the machine and the occasion: a phase whose state for its children did not
    come along is trained again, and is still the same result."""
    mine = path.read_bytes()
    if mine == theirs or path.suffix != ".json":
        return mine == theirs
    try:
        return _said(mine) == _said(theirs)
    except ValueError:  # damaged, so not the same
        return False


def without_machine(content: dict[str, Any]) -> dict[str, Any]:
    """The result with a provenance that names no machine."""
    return _without(content, MACHINE)


def _without(content: dict[str, Any], facts: tuple[str, ...]) -> dict[str, Any]:
    made = content.get("provenance")
    if not isinstance(made, dict):
        return content
    return content | {"provenance": {key: item for key, item in made.items() if key not in facts}}


def _said(content: bytes) -> dict[str, Any]:
    value = json.loads(content)
    if not isinstance(value, dict):
        raise ValueError("not a mapping")
    return {key: item for key, item in _without(value, MACHINE + OCCASION).items() if key != "sha256"}
