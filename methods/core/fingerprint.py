"""Which code a number depends on, and hashes of it.

What is counted, by place on disk and not by what a process has imported, so that every way to start a training agrees:

- whole rooms: data, networks, pruning, attacks and sparse, then training or evaluation, whichever made the number; but not
  networks/compact, which stores finished networks exactly, or not at all;
- of core: allocation (how many weights a layer keeps), architectures (the shapes that networks are built from), datasets (normalisation,
  classes, splits), radius (the size of attacks) and signs (of frozen weights); for evaluations also eval_spec (the attacks and their
  settings) and eval_result (how blocks become accuracies). The rest of core names, writes, reads or checks, and can fail a run but not
  change its numbers;
- of distributed: world and synced_norm, which do the arithmetic of parts of a batch;
- for trainings: the method's own file, or folder, and those of methods that it builds on, without their RECIPE: what that says of a Run
  stands in the Run's spec, and so in its id. Of a method of an installed package: every file of its package, named METHOD:FILE.

Commands, runtime, the start of processes and everything under workflow/ are plumbing: editing them makes nothing stale. Programs are hashed
as syntax trees, so comments, docstrings and layout do not count; lists that programs read (.txt, .json) count byte by byte. Images do
not: the data's own fingerprint, recorded beside this one, is made of them.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from methods.core import imports
from methods.core.method_files import locate, located
from methods.core.revision import ROOT

SHARED = (
    *(f"methods/{room}" for room in ("data", "networks", "pruning", "attacks", "sparse")),
    *(f"methods/core/{module}.py" for module in ("allocation", "architectures", "datasets", "radius", "signs")),
)
TRAINING = ("methods/training", "methods/distributed/world.py", "methods/distributed/synced_norm.py")
EVALUATION = ("methods/evaluation", "methods/core/eval_spec.py", "methods/core/eval_result.py")
STORAGE = "methods/networks/compact"
LISTS = (".txt", ".json")
TRUST = "methods/evaluation/trust"  # doubts a number, and does not change it


def of_training(method: str, root: Path = ROOT) -> dict[str, str]:
    """File -> hash, of all that the weights of a trained network depend on."""
    shared, own = _hashes(_files(root, SHARED, TRAINING), root), method_files(method, root)
    place = locate(method, root)
    if place.package is None:
        return shared | _hashes(own, root)
    return shared | {f"{method}:{name}": value for name, value in _hashes(own, place.path.parent).items()}


def of_evaluation(root: Path = ROOT) -> dict[str, str]:
    """File -> hash, of all that the answers of an evaluation depend on, given the network."""
    return _hashes(_files(root, SHARED, EVALUATION), root)


def path_of(name: str, root: Path = ROOT) -> Path | None:
    """The file that a name of these stands for; None where the method that it belongs to is not installed."""
    method, _, place = name.rpartition(":")
    if not method:
        return root / name
    files = located(root)
    return files[method].path.parent / place if method in files else None


def combined(files: Mapping[str, str]) -> str:
    """One hash of many."""
    return hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()[:16]


def counted(methods: Iterable[str], root: Path = ROOT) -> list[Path]:
    """Every file that some number of these methods depends on: what a report on stale numbers is made from."""
    own = {path for name in methods for path in method_files(name, root)}
    return sorted({*_files(root, SHARED, TRAINING, EVALUATION), *own})


def method_files(name: str, root: Path = ROOT) -> list[Path]:
    """The files of a method, and of the methods that it builds on."""
    method = locate(name, root)
    if method.package is not None:  # all of its module's package, since what that imports is not known
        return sorted(_within(method.path.parent)) if "." in method.module else [method.path]
    reached = {path for path in imports.behind(method.module, root=root) if _of_methods(path.relative_to(root))}
    return sorted(reached | set(_within(method.path.parent) if method.path.name == "__init__.py" else ()))


def digest(source: str) -> str:
    """The hash of a program text."""
    tree = ast.parse(source)
    tree.body = [node for node in tree.body if not (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "RECIPE")]
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
            del body[0]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()[:16]


def file_digest(path: Path) -> str:
    """The hash of a file, remembered while the file stays as it is."""
    return _remembered(path, path.stat().st_mtime_ns)


@cache
def _remembered(path: Path, modified: int) -> str:
    content = path.read_bytes()
    if path.suffix == ".py":
        try:
            return digest(content.decode())
        except (SyntaxError, UnicodeDecodeError):  # in the middle of an edit: unlike any program
            pass
    return hashlib.sha256(content).hexdigest()[:16]


def _of_methods(path: Path) -> bool:
    """Whether a file is one of a method: of baselines/, or directly in methods/."""
    return path.name != "__init__.py" and (path.parts[0] == "baselines" or path.parent == Path("methods"))


def _files(root: Path, *lists: tuple[str, ...]) -> Iterator[Path]:
    for place in (root / name for names in lists for name in names):
        if place.is_dir():
            yield from (path for path in _within(place) if not {root / STORAGE, root / TRUST} & set(path.parents))
        elif place.is_file():
            yield place


def _within(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        if path.suffix in (".py", *LISTS) and path.is_file():
            yield path


def _hashes(paths: Iterable[Path], root: Path) -> dict[str, str]:
    return {path.relative_to(root).as_posix(): file_digest(path) for path in sorted(paths)}
