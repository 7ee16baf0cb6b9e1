"""Files that carry the SHA-256 of their own contents, read without torch; methods/sealed.py writes them.

A damaged file is never used: it is named, and made anew.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

from workflow.suite.errors import SuiteError

REMEDY = "start Snakemake again, which makes it anew"


class Damaged(SuiteError):
    """A file is there, but its contents are not those that were written."""


def digest(value: dict[str, Any]) -> str:
    """SHA-256 of the canonical JSON of everything but the checksum itself."""
    rest = {key: item for key, item in value.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def read(path: Path) -> dict[str, Any]:
    """The contents of a sealed JSON file; FileNotFoundError where there is none."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        raise Damaged(f"{path}: is damaged, it cannot be read as JSON ({error}); {REMEDY}") from None
    if not isinstance(value, dict) or value.get("sha256") != digest(value):
        raise Damaged(f"{path}: is damaged, its contents do not have the SHA-256 that stands in it; {REMEDY}")
    return value


def require(path: Path, expected: str | None) -> None:
    """Raise unless a file of any kind has this SHA-256."""
    try:
        with path.open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise Damaged(f"{path}: cannot be read ({error.strerror}), though train.json describes it; {REMEDY}") from None
    if found != expected:
        raise Damaged(f"{path}: is damaged, or not the file that train.json describes (its SHA-256 is {found}); {REMEDY}")
