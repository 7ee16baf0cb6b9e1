"""The code behind a module: every file of the project that it reaches, found by reading imports. Nothing is imported to find them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from methods.core.revision import ROOT

PACKAGES = ("workflow", "methods", "baselines")


def behind(*modules: str, root: Path = ROOT) -> list[Path]:
    """The files of these modules (dotted names) and of everything they import, at any depth, in order of their names."""
    reached: set[Path] = set()
    ahead = [path for module in modules for path in _files(module, root)]
    while ahead:
        path = ahead.pop()
        if path not in reached:
            reached.add(path)
            ahead += [file for name in _imports(path, path.stat().st_mtime_ns) for file in _files(name, root)]
    return sorted(reached)


@cache
def _imports(path: Path, modified: int) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_names(ast.parse(path.read_text(encoding="utf-8")))))


def _names(tree: ast.AST) -> Iterator[str]:
    """Every dotted name that an import statement mentions, at any depth; `from a import b` may mean the module a.b.

    What is imported for type checkers alone never runs.
    """
    if isinstance(tree, ast.Import):
        yield from (alias.name for alias in tree.names)
    elif isinstance(tree, ast.ImportFrom) and tree.module and not tree.level:
        yield tree.module
        yield from (f"{tree.module}.{alias.name}" for alias in tree.names)
    elif not (isinstance(tree, ast.If) and ast.unparse(tree.test) == "TYPE_CHECKING"):
        for node in ast.iter_child_nodes(tree):
            yield from _names(node)


def _files(name: str, root: Path) -> list[Path]:
    """The files that importing a dotted name of the project runs: its own and those of the packages around it."""
    parts = name.split(".")
    if parts[0] not in PACKAGES:
        return []
    places = [root.joinpath(*parts[:depth]) for depth in range(1, len(parts) + 1)]
    candidates = [path for place in places for path in (place / "__init__.py", place.with_suffix(".py"))]
    return [path for path in candidates if path.is_file()]
