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
    why = []
    for path in _records(plan, run, folder):
        if not path.is_file():
            why.append(f"{path.name} is gone, so the code behind it is unknown")
            continue
        recorded = _files(path)
        if recorded is None:
            why.append(f"{path.name} does not record the code that made it")
        else:
            why += [f"{name} has changed" for name in changed(recorded, root)]
    return list(dict.fromkeys(why))


def _records(plan: Plan, run: str, folder: Path) -> Iterator[Path]:
    yield from (folder / paths.train_manifest(item.name) for item in plan.lineage(run))
    chosen = plan.evaluations[run]
    yield from (folder / paths.shard(run, chosen.id, k, chosen.shards) for k in range(1, chosen.shards + 1))


def _files(path: Path) -> dict[str, str] | None:
    return sealed.read(path).get("provenance", {}).get("files")
