"""JSON files that carry the SHA-256 of their own contents: a damaged one is noticed instead of used. Torch-free.

workflow/suite/sealed.py reads the same files without importing this package.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from methods.atomic import write_json
from methods.errors import UserError

REMEDY = "start Snakemake again, which makes it anew"


class Damaged(UserError):
    """A file is there, but its contents are not those that were written."""


def digest(value: dict[str, Any]) -> str:
    """SHA-256 of the canonical JSON of everything but the checksum itself."""
    rest = {key: item for key, item in value.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def write(path: Path, value: dict[str, Any]) -> None:
    """Write a mapping with its checksum, atomically."""
    plain = json.loads(json.dumps(value, allow_nan=False))  # as a reader will see it: lists for tuples, text for keys
    write_json(path, {**plain, "sha256": digest(plain)})


def read(path: Path) -> dict[str, Any]:
    """The mapping in a file that `write` wrote."""
    try:
        value = json.loads(path.read_text())
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:
        raise Damaged(f"{path}: is damaged, it cannot be read as JSON ({error}); {REMEDY}") from None
    if not isinstance(value, dict) or value.get("sha256") != digest(value):
        raise Damaged(f"{path}: is damaged, its contents do not have the SHA-256 that stands in it; {REMEDY}")
    return value


def file_hash(path: Path) -> str:
    """SHA-256 of a file of any kind."""
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from error


def require(path: Path, expected: str | None) -> str:
    """The hash of a file, which has to be the one that its run's manifest names."""
    found = file_hash(path)
    if found != expected:
        raise Damaged(f"{path}: is damaged, or not the file that train.json describes (its SHA-256 is {found}); {REMEDY}")
    return found
