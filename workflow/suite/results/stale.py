"""Whether the code that made a number is still the code that lies here.

Trainings and evaluations record hashes of the files that their numbers depend on (methods/core/fingerprint.py says which); here they are
held against the files as they are now. A raised `version` of a method needs no check, since it renames the Run.
"""

from collections.abc import Iterator
from pathlib import Path

from methods.core import paths, sealed
from methods.core.fingerprint import file_digest, path_of
from workflow.suite.planning import config
from workflow.suite.planning.plan import Plan


def changed(recorded: dict[str, str], root: Path = config.ROOT) -> list[str]:
    """The recorded files that have another program now, or are gone."""
    return [name for name, before in recorded.items() if _digest(name, root) != before]


def _digest(name: str, root: Path) -> str | None:
    path = path_of(name, root)
    return file_digest(path) if path is not None and path.is_file() else None


def reasons(plan: Plan, run: str, folder: Path, root: Path = config.ROOT) -> list[str]:
    """Why the number of a Run is stale; empty when it is not. Its parents, its own training and its evaluation count."""
    return list(dict.fromkeys(why for whys in by_file(plan, run, folder, root).values() for why in whys))


def by_file(plan: Plan, run: str, folder: Path, root: Path = config.ROOT) -> dict[str, list[str]]:
    """The same by the manifest, or shard of the evaluation, that would have to be made again."""
    why = {name: _why(folder / name, root) for name in _records(plan, run)}
    return {name: whys for name, whys in why.items() if whys}


def _why(path: Path, root: Path) -> list[str]:
    if not path.is_file():
        return [f"{path.name} is gone, so the code behind it is unknown"]
    recorded = _files(path)
    if recorded is None:
        return [f"{path.name} does not record the code that made it"]
    return [f"{name} has changed" for name in changed(recorded, root)]


def _records(plan: Plan, run: str) -> Iterator[str]:
    yield from (paths.train_manifest(item.name) for item in plan.lineage(run))
    chosen = plan.evaluations[run]
    yield from (paths.shard(run, chosen.id, k, chosen.shards) for k in range(1, chosen.shards + 1))


def _files(path: Path) -> dict[str, str] | None:
    return sealed.read(path).get("provenance", {}).get("files")
