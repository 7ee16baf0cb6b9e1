"""Hashes of the programs behind a result: of syntax trees, so that comments, docstrings and layout do not count."""

from __future__ import annotations

import ast
import hashlib
from functools import cache
from pathlib import Path


def digest(source: str) -> str:
    """The hash of a program text."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
            body[0].value.value = ""
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()[:16]


def file_digest(path: Path) -> str | None:
    """The hash of a program file, remembered while the file stays as it is; None where it is no program."""
    return _remembered(path, path.stat().st_mtime_ns)


@cache
def _remembered(path: Path, modified: int) -> str | None:
    try:
        return digest(path.read_text(encoding="utf-8"))
    except SyntaxError:
        return None
