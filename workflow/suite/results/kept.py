"""Results that are committed: of every Run that is evaluated, and of the phases before it, what `archive` would put into a set.

They stay where they are. Git ignores `results/`, since Runs of every scale lie in one folder and most are nobody else's business; `keep`
adds the chosen files by name. So what is tracked is what was kept, and keeping again adds what has been finished since.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from methods.core import files, paths
from methods.core.errors import UserError
from workflow.suite.jobs import damage
from workflow.suite.planning.plan import Plan
from workflow.suite.results import archive, shareable

LIMIT = 30 * 10**6  # bytes of all committed results together
# An absolute path; not the tail of an address or of a relative path.
FOREIGN = re.compile(r"(?<![\w.:/])(?:/(?:[\w.-]+/)+[\w.-]*|[A-Za-z]:\\\S*)")


@dataclass(frozen=True, kw_only=True)
class Kept:
    """What git tracks of the results after a call: Runs and files of the plan, bytes of everything, and tracked files of no Run of it."""

    runs: int
    files: int
    size: int
    others: tuple[str, ...]


def keep(plan: Plan, folder: Path, *, limit: int = LIMIT) -> Kept:
    """Let git track the finished results of a plan. Nothing is added where one is damaged or tells of a machine, or all are too large."""
    runs = complete(plan, folder)
    if not runs:
        raise UserError(f"no Run of scale '{plan.scale.name}' is evaluated under {folder.resolve()}; nothing to keep")
    names = [name for run in runs for name in archive.files_of(plan, run, folder)]
    _check_repository(folder)
    for run in runs:
        damage.check_history(run, folder)
    for name in names:
        if name.endswith(".json"):
            _strip(folder / name)
    tracked = _git(folder, "ls-files", "-z", "--", paths.RESULTS).split("\0")
    everything = {*names, *(name for name in tracked if name and (folder / name).is_file())}
    size = sum((folder / name).stat().st_size for name in everything)
    if size > limit:
        largest = sorted(names, key=lambda name: -(folder / name).stat().st_size)[:3]
        shown = ", ".join(f"{name} ({(folder / name).stat().st_size / 1e6:.1f} MB)" for name in largest)
        raise UserError(
            f"{paths.RESULTS}: {size / 1e6:.1f} MB would be committed, and {limit / 1e6:.0f} MB are allowed; the largest: {shown}."
            " Nothing was added; keep fewer Runs, or move them with `export`"
        )
    _git(folder, "add", "--force", "--pathspec-from-file=-", "--pathspec-file-nul", given="\0".join(names))
    others = {name for name in everything - set(names) if name.startswith(paths.run_folder(""))}
    return Kept(runs=len(runs), files=len(names), size=size, others=tuple(sorted(others)))


def complete(plan: Plan, folder: Path) -> list[str]:
    """The Runs that are evaluated and those that they started from, each once, parents first."""
    final = (run for run, chosen in plan.evaluations.items() if (folder / paths.evaluation(run, chosen.id)).is_file())
    runs = dict.fromkeys(item.name for run in final for item in reversed(plan.lineage(run)))
    return [run for run in runs if (folder / paths.train_manifest(run)).is_file()]


def private(value: Any, where: str = "") -> Iterator[str]:
    """The entries of a result that tell of the machine that made it: its name, or places on its disks."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from private(item, f"{where}.{key}" if where else key)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from private(item, f"{where}[{number}]")
    elif isinstance(value, str) and (FOREIGN.search(value) or (len(platform.node()) > 3 and platform.node() in value)):
        yield where


def _strip(path: Path) -> None:
    """Take the names of machines out of a result, in place and with its time stamp; refuse what tells of one elsewhere."""
    content = shareable.contents(path)
    rest = shareable.without_machine(content)
    if rest != content:
        stamp = path.stat()
        files.write(path, shareable.shared(path))
        os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    if places := list(private(rest)):
        raise UserError(f"{path}: {', '.join(places)}: names a machine or a place on its disk, which is not for others; nothing was added")


def _check_repository(folder: Path) -> None:
    top = Path(_git(folder, "rev-parse", "--show-toplevel").strip())
    if top.resolve() != folder.resolve():
        raise UserError(f"{folder.resolve()}: results are kept at the top of a git repository, which is {top}; give it with --directory")


def _git(folder: Path, *words: str, given: str | None = None) -> str:
    try:
        done = subprocess.run(["git", "-C", str(folder), *words], input=given, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise UserError("git is not installed; results are kept by it") from None
    if done.returncode:
        raise UserError(f"git {words[0]} in {folder.resolve()}: {done.stderr.strip()}")
    return done.stdout
