"""A set of finished Runs as one archive: networks, manifests, histories and per-image outcomes, with a checksum for every file.

What is in it is what a reader of the numbers needs, and nothing that can be made from it: no dense model files, no saved states, and no
names of the machines that made it.
Members are written in order and without dates, so that equal results give equal archives.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from methods.core import files, paths
from methods.core.errors import UserError
from workflow.suite.planning.plan import Plan
from workflow.suite.results import shareable

INDEX = "index.json"
FORMAT = 1
LARGEST = 64 * 2**20  # bytes of one member; everything that is exported is far smaller
EPOCH = (1980, 1, 1, 0, 0, 0)


def finished_files(plan: Plan, folder: Path) -> Iterator[str]:
    """The files of every finished Run of a plan that belong in a set, relative to the folder of results."""
    for run in plan.runs:
        yield from files_of(plan, run, folder)


def files_of(plan: Plan, run: str, folder: Path) -> Iterator[str]:
    """The files of one Run that belong in a set; none while its training is not finished."""
    if not (folder / paths.train_manifest(run)).is_file():
        return
    names = [paths.train_manifest(run), paths.history(run), paths.spec(run), paths.compact(run), paths.first_epoch(run)]
    names += [paths.security_curve(run, norm) for norm in paths.CURVE_NORMS]
    if chosen := plan.evaluations.get(run):
        shards = [paths.shard(run, chosen.id, k, chosen.shards) for k in range(1, chosen.shards + 1)]
        names += [paths.evaluation(run, chosen.id), *shards]
    yield from (name for name in names if (folder / name).is_file())


def export(plan: Plan, folder: Path, archive: Path) -> int:
    """Write the archive; returns how many Runs are in it. Damaged files are refused, not exported."""
    names = list(finished_files(plan, folder))
    if not names:
        raise UserError(f"no Run of scale '{plan.scale.name}' is finished under {folder.resolve()}; nothing to export")
    members = {name: shareable.shared(folder / name) for name in names}
    index = {
        "format": FORMAT,
        "scale": plan.scale.name,
        "files": {name: hashlib.sha256(content).hexdigest() for name, content in members.items()},
    }
    with files.replacing(archive) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as target:
        for name, content in [(INDEX, json.dumps(index, indent=1, sort_keys=True).encode()), *members.items()]:
            target.writestr(zipfile.ZipInfo(name, EPOCH), content, zipfile.ZIP_DEFLATED)
    return sum(name.endswith(f"/{paths.MANIFEST}") for name in names)


def unpack(archive: Path, folder: Path) -> int:
    """Put the files of an archive in their places; returns how many Runs came. A file that is there with other contents is refused.

    Everything is checked before anything is written; what is there already stays as it is, with its time stamp.
    """
    try:
        with zipfile.ZipFile(archive) as source:
            index = json.loads(_member(source, INDEX, archive))
            members = {name: _member(source, name, archive) for name in _listed(index, archive)}
    except (OSError, zipfile.BadZipFile, ValueError) as error:
        raise UserError(f"{archive}: is not an archive of results ({error}); export it again") from None
    for name, content in members.items():
        if hashlib.sha256(content).hexdigest() != index["files"][name]:
            raise UserError(f"{archive}: {name} does not have the SHA-256 of the index; the archive is damaged, export it again")
        if (folder / name).is_file() and not shareable.same(folder / name, content):
            raise UserError(f"{folder / name}: is there already with other contents; move it away, or import into another folder")
    # Manifests last: a folder with a manifest is complete.
    for name in sorted(members, key=lambda name: (name.endswith(f"/{paths.MANIFEST}"), name)):
        if not (folder / name).is_file():
            files.write(folder / name, members[name])
    return sum(name.endswith(f"/{paths.MANIFEST}") for name in members)


def _member(source: zipfile.ZipFile, name: str, archive: Path) -> bytes:
    try:
        size = source.getinfo(name).file_size
    except KeyError:
        raise UserError(f"{archive}: has no member '{name}'; it is not an archive of results, or incomplete") from None
    if size > LARGEST:
        raise UserError(f"{archive}: member '{name}' claims {size} bytes, more than any file of a Run has; it is not opened")
    return source.read(name)


def _listed(index: object, archive: Path) -> list[str]:
    """The names in an index, each a plain place below the folder of Runs."""
    if not isinstance(index, dict) or index.get("format") != FORMAT or not isinstance(index.get("files"), dict):
        raise UserError(f"{archive}: its index is not one of format {FORMAT}; it was made by another version of the suite")
    for name in index["files"]:
        place = PurePosixPath(name)
        if place.is_absolute() or ".." in place.parts or place.parts[:2] != PurePosixPath(paths.run_folder("x")).parts[:2]:
            raise UserError(f"{archive}: '{name}' does not lie below {paths.RESULTS}/runs; nothing was imported")
    return list(index["files"])
