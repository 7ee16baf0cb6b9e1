"""The configuration as values: suite settings and scales, read from YAML and checked against the schemas."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from methods.core import eval_spec
from methods.core.errors import UserError
from methods.core.run_check import check_condition, check_keys, check_value
from workflow.suite.planning import schema
from workflow.suite.planning.spelling import hint

ROOT = Path(__file__).resolve().parents[3]
CONFIG = ROOT / "workflow" / "config"

Condition = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Suite:
    """Where to run, at which scale, with how many GPUs per Run; time limits are for the GPU of that name (config/devices.yaml);
    `seeds` take the place of the scale's."""

    scale: str
    data_root: Path
    allow_cpu: bool = False
    imitate_bf16: bool = False
    gpu: str = "a100"
    gpus_per_run: Mapping[str, int] = field(default_factory=dict)
    longest_hours: float = 24
    seeds: tuple[int, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class Scale:
    """A rewriting of the paper's Runs to a budget; `rewrite` comes before the conditional `when`; `warm` starts jobs from
    one process that has torch loaded, which pays where a job takes seconds; cells of which their table says what a condition of
    `seeds_when` asks have the seeds there, the last that holds. Of a scale that is not `comparable`, `orderings` says that
    which of two numbers is higher may be looked at all the same."""

    name: str
    path: Path
    comparable: bool
    why: str
    seeds: tuple[int, ...]
    require_gpu: bool
    warm: bool
    orderings: bool = False
    data: Mapping[str, Any]
    evaluate: Mapping[str, Any]
    rewrite: Mapping[str, Any] = field(default_factory=dict)
    when: tuple[tuple[Condition, Mapping[str, Any]], ...] = ()
    seeds_when: tuple[tuple[Condition, tuple[int, ...]], ...] = ()


def load_suite(values: Mapping[str, Any] | None = None) -> Suite:
    """The settings of suite.yaml, or those given (as Snakemake hands them over)."""
    path = CONFIG / "suite.yaml"
    given: dict[str, Any] = schema.read_yaml(path) if values is None else dict(values)
    for key in ("allow_cpu", "imitate_bf16"):
        if isinstance(word := given.get(key), str):  # --config takes only Python's spelling for a truth value
            given[key] = {"true": True, "false": False}.get(word, word)
    if isinstance(counts := given.get("gpus_per_run"), Mapping):  # ... and reads numbers in braces as words
        given["gpus_per_run"] = {name: _number(count) for name, count in counts.items()}
    if "seeds" in given:  # one seed needs no brackets
        seeds = given["seeds"]
        given["seeds"] = [_number(seed) for seed in seeds] if isinstance(seeds, list | tuple) else [_number(seeds)]
    schema.check(given, "suite", source=shown(path))
    seeds = tuple(given["seeds"]) if "seeds" in given else None
    return Suite(**{**given, "data_root": Path(given["data_root"]), "seeds": seeds})


def seeds_of(text: str) -> tuple[int, ...]:
    """The seeds of a word on a command line: 1,2,3."""
    words = text.strip("[]").split(",")
    if len(set(words)) < len(words) or not all(word.isascii() and word.isdecimal() for word in words):
        raise UserError(f"'{text}' is not a list of different seeds such as 1,2,3")
    return tuple(map(int, words))


def names(kind: str, folder: Path = CONFIG) -> list[str]:
    """The names of all `scales` or `tables`."""
    return sorted(path.stem for path in (folder / kind).glob("*.yaml"))


def load_scale(name: str, folder: Path = CONFIG) -> Scale:
    """A scale by name."""
    path = find("scales", name, folder)
    values = _scale_values(name, path, folder)
    schema.check(values, "scale", source=shown(path))
    scale = Scale(
        name=name,
        path=path,
        comparable=values["comparable"],
        why=values["why"],
        seeds=tuple(values["seeds"]),
        require_gpu=values["require_gpu"],
        warm=values["warm"],
        orderings=values.get("orderings", False),
        data=values["data"],
        evaluate=values["evaluate"],
        rewrite=values.get("rewrite", {}),
        when=tuple((condition, change) for condition, change in values.get("when", ())),
        seeds_when=tuple((condition, tuple(seeds)) for condition, seeds in values.get("seeds_when", ())),
    )
    _check_scale(scale)
    return scale


def find(kind: str, name: str, folder: Path) -> Path:
    """The file of a scale or table, or a clear error."""
    path = folder / kind / f"{name}.yaml"
    if name not in names(kind, folder):
        known = names(kind, folder)
        raise UserError(f"{shown(folder / kind)}: no {kind[:-1]} is called '{name}'; {hint(name, known)}allowed: {', '.join(known)}")
    return path


def shown(path: Path) -> Path:
    """A path as messages name it: within the repository relative to its root."""
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path


def _scale_values(name: str, path: Path, folder: Path) -> Any:
    """What a scale's file says, on top of what the scale that it `extends` says, key by key."""
    values = schema.read_yaml(path)
    if not isinstance(values, Mapping) or "extends" not in values:
        return values
    others = {other: schema.read_yaml(folder / "scales" / f"{other}.yaml") for other in names("scales", folder) if other != name}
    whole = {other: base for other, base in others.items() if isinstance(base, Mapping) and "extends" not in base}
    if values["extends"] not in whole:
        raise UserError(f"{shown(path)}: extends: '{values['extends']}' is not allowed; allowed: a whole scale, {', '.join(whole)}")
    return {**whole[values["extends"]], **{key: value for key, value in values.items() if key != "extends"}}


def _number(word: Any) -> Any:
    return int(word) if isinstance(word, str) and word.isascii() and word.isdecimal() else word


def _check_scale(scale: Scale) -> None:
    """Refuse rewrites and conditions that no Run can have."""
    source = shown(scale.path)
    for at, change in (("rewrite", scale.rewrite), *((f"when[{number}]", change) for number, (_, change) in enumerate(scale.when))):
        check_keys(change, source=source, at=at)
        for key, value in change.items():
            if not isinstance(value, Mapping):
                check_value(key, value, source=source, at=at)
    for kind, pairs in (("when", scale.when), ("seeds_when", scale.seeds_when), ("evaluate.when", scale.evaluate.get("when", ()))):
        for number, (condition, _) in enumerate(pairs):
            check_condition(condition, source=source, at=f"{kind}[{number}]")
    base = {key: value for key, value in scale.evaluate.items() if key not in ("when", "shards")}
    changes = [({}, {}), *scale.evaluate.get("when", ())]
    for number, (_, change) in enumerate(changes):
        try:
            eval_spec.parse({**base, **{key: value for key, value in change.items() if key != "shards"}})
        except UserError as error:
            raise UserError(f"{source}: evaluate{f'.when[{number - 1}]' if number else ''}: {error}") from None
