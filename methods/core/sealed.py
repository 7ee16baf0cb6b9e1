"""JSON files that carry the SHA-256 of their own contents: a damaged one is noticed instead of used."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from methods.core.errors import UserError
from methods.core.files import write_json

REMEDY = "start Snakemake again, which makes it again"


class Damaged(UserError):
    """A file is there, but its contents are not those that were written."""


class Missing(UserError, FileNotFoundError):
    """There is no such file; for callers that treat this as an answer it is also a FileNotFoundError."""


def digest(value: dict[str, Any]) -> str:
    """SHA-256 of the canonical JSON of everything but the checksum itself."""
    rest = {key: item for key, item in value.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def write(path: Path, value: dict[str, Any]) -> None:
    """Write a mapping with its checksum, atomically."""
    plain = json.loads(json.dumps(value, allow_nan=False))  # as a reader will see it: lists for tuples, text for keys
    write_json(path, {**plain, "sha256": digest(plain)})


def read(path: Path) -> dict[str, Any]:
    """The mapping in a file that `write` wrote; `Missing` where there is none."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise Missing(f"{path}: no such file") from None
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
    try:
        actual = file_hash(path)
    except UserError as error:
        raise Damaged(f"{error}, though train.json describes it; {REMEDY}") from None
    if actual != expected:
        raise Damaged(f"{path}: is damaged, or not the file that train.json describes (its SHA-256 is {actual}); {REMEDY}")
    return actual
