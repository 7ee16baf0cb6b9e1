"""What others measured, as values: a third source of numbers beside the paper's and ours, read from YAML and checked."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from methods.core.run_check import check_condition
from methods.core.run_spec import matches
from workflow.suite.planning import config, schema
from workflow.suite.planning.config import CONFIG, Condition, shown


@dataclass(frozen=True, kw_only=True)
class Other:
    """A network that someone else evaluated, in percent. It belongs to the cells whose Run meets the condition; only where it is `close`
    is it held against the paper's number, and `how` says in what it differs."""

    path: Path
    what: str
    who: str
    where: str
    settings: str
    comparable: str
    how: str
    robust: float
    clean: float | None
    condition: Condition

    @property
    def close(self) -> bool:
        return self.comparable == "close"

    def about(self, run: Mapping[str, Any]) -> bool:
        """Whether it is a network of this Run."""
        return matches(self.condition, run)

    def value(self, metric: str) -> float | None:
        """Its number for a table's metric."""
        return self.robust if metric == "robust_acc" else self.clean


def load_others(folder: Path = CONFIG) -> tuple[Other, ...]:
    """All files of config/others, in the order of their names."""
    return tuple(other for name in config.names("others", folder) for other in _load(folder / "others" / f"{name}.yaml"))


def _load(path: Path) -> list[Other]:
    values = schema.read_yaml(path)
    schema.check(values, "others", source=shown(path))
    return [_other(path, values, entry, number) for number, entry in enumerate(values["entries"])]


def _other(path: Path, common: Mapping[str, Any], entry: Mapping[str, Any], number: int) -> Other:
    said = {**{key: value for key, value in common.items() if key != "entries"}, **entry}
    condition = {**common.get("run", {}), **entry["run"]}
    check_condition(condition, source=shown(path), at=f"entries[{number}].run")
    return Other(
        path=path,
        what=said["what"],
        who=said["who"],
        where=said["where"],
        settings=said["settings"],
        comparable=said["comparable"],
        how=said["how"],
        robust=float(said["robust"]),
        clean=float(said["clean"]) if "clean" in said else None,
        condition=condition,
    )
