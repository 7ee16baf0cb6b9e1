"""The folders that a run writes to, looked at before it starts: a link to nothing, a file in the way, no right to write, no such folder."""

import os
import shlex
from collections.abc import Collection
from pathlib import Path

from methods.core import paths
from methods.core.errors import UserError

OWN = ".snakemake"


def check(folder: Path, scale: str) -> None:
    """Refuse a working directory in which results could not be kept, with the reason and the way out."""
    places = (OWN, paths.RESULTS, f"{paths.RESULTS}/runs", f"{paths.RESULTS}/data", paths.REPORTS, f"{paths.REPORTS}/{scale}", paths.LOGS)
    for place in (folder, *(folder / name for name in places)):
        if problem := _problem(place):
            raise UserError(f"{place if place != folder else folder.resolve()}: {problem}, or work elsewhere with --directory FOLDER")


def check_data(root: Path, usual: Path, sources: Collection[str]) -> None:
    """Refuse to fetch data sets into a folder that was named and is not there: the name may be mistyped. The usual one is made."""
    if "full" in sources and root != usual and not root.exists():
        raise UserError(f"data_root: '{root}' is not there; if data sets are to be fetched into it: mkdir -p {shlex.quote(str(root))}")


def _problem(place: Path) -> str | None:
    if not place.exists():
        if place.is_symlink():
            return f"is a link to {place.readlink()}, which is not there; make that folder, remove the link"
        return None  # it will be made; what it is made in is looked at as well
    if not place.is_dir():
        return "is not a folder; move it out of the way"
    if not os.access(place, os.W_OK | os.X_OK):
        frozen = os.statvfs(place).f_flag & os.ST_RDONLY
        return f"cannot be written to ({'read-only file system' if frozen else 'no permission'}); change that"
    return None
