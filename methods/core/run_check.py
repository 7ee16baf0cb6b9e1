"""Checks of Runs and of parts of Runs against the model, with messages that name the file, the key and the allowed values."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, defstruct, structs

from methods.core import closed
from methods.core.closed import Closed, NotAllowed, dotted_keys
from methods.core.errors import UserError
from methods.core.run_model import Run
from methods.core.run_spec import Spec, expand, normalise


def check_run(run: Mapping[str, Any], *, source: str | Path = "") -> Run:
    """A whole Run as the typed model; else a NotAllowed. What its method says of it is for `check_method`."""
    return closed.parse(run, Run, source=source)


def check_method(run: Mapping[str, Any], options: type[Struct], phases: Collection[str], *, source: str | Path = "") -> None:
    """Refuse options and a phase that the method of a Run does not have: `options` is the `options_model` of its RECIPE."""
    closed.parse(run.get("options", {}), options, source=source, at="options")
    phase = run.get("phase")
    if phase not in (phases or (None,)):
        word = "missing key 'phase'" if phase is None else f"phase: '{phase}' is not allowed"
        raise NotAllowed(source, "phase", f"{word}; allowed: {', '.join(phases) or 'none, since the method has no phases'}")


def missing_keys(run: Mapping[str, Any]) -> list[str]:
    """Dotted keys that every Run has, and this one does not."""
    return closed.missing(run, Run)


def check_part(part: Any, *, source: str | Path, at: str = "") -> None:
    """Refuse a part of a Run (nested keys) that holds what no Run holds. None stands for 'without this key'."""
    try:
        plain = normalise(part)
    except UserError as error:
        raise NotAllowed(source, at, f"{at}: {error}") from None
    closed.parse(plain, _part(Run), source=source, at=at)
    attack = plain.get("attack", {})
    if "name" in attack:
        others = {key: value for key, value in attack.items() if key != "name"}
        closed.parse(others, _attack_parts()[attack["name"]], source=source, at=f"{at}.attack" if at else "attack")


def check_keys(keys: Iterable[str], *, source: str | Path, at: str, options: Iterable[type[Struct]] | None = None) -> None:
    """Refuse a dotted key that no Run has; under `options` one that none of these models has (None: any is let through)."""
    for key in keys:
        if key.startswith("options.") and options is None:
            continue
        allowed = run_keys() if not key.startswith("options.") else [f"options.{k}" for model in options or () for k in dotted_keys(model)]
        if key not in allowed:
            raise NotAllowed(source, key, f"{at}: unknown key '{key}'; allowed: {', '.join(sorted(set(allowed))) or 'none'}")


def check_value(key: str, value: Any, *, source: str | Path, at: str) -> None:
    """Refuse a value that cannot stand at this dotted key of a Run."""
    check_keys([key], source=source, at=at)
    check_part(expand({key: value}), source=source, at=at)


def check_condition(condition: Mapping[str, Any], *, source: str | Path, at: str) -> None:
    """Refuse a condition that no Run can meet: an unknown key, or a value that can never stand there. A list is any of its items."""
    for key, wanted in condition.items():
        for value in wanted if isinstance(wanted, list | tuple) else [wanted]:
            check_value(key, value, source=source, at=at)


@cache
def run_keys() -> tuple[str, ...]:
    """All dotted keys of a Run, those of every attack among them."""
    return tuple(sorted(dotted_keys(_part(Run))))


def parse_run(text: str, *, source: str = "--spec") -> Spec:
    """A complete Run from JSON text, as plain data; it is still to be held against the RECIPE of its method (`check_method`)."""
    try:
        run = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise UserError(f"{source} is not JSON: {error}") from None
    if not isinstance(run, dict):
        raise UserError(f"{source} is no JSON object; `python -m workflow.suite show` prints complete Runs")
    spec: Spec = normalise(run)
    check_run(spec, source=source)
    return spec


@cache
def _part(model: type[Struct]) -> type[Struct]:
    """The model with every key optional, nested ones too; of several models that a tag tells apart, one with the keys of all."""
    return defstruct(f"{model.__name__}Part", [(name, kind | None, None) for name, kind in _part_fields(model)], bases=(Closed,))


def _part_fields(model: type[Struct]) -> Iterator[tuple[str, Any]]:
    for field in structs.fields(model):
        candidates = closed.models(field.type)
        if len(candidates) > 1:
            tags: Any = Literal[tuple(closed.tag(candidate) for candidate in candidates)]
            fields = dict([(closed.tag_field(candidates[0]), tags), *(f for one in candidates for f in _part_fields(one))])
            yield field.name, defstruct(field.name, [(name, kind | None, None) for name, kind in fields.items()], bases=(Closed,))
        else:
            yield field.name, _part(candidates[0]) if candidates else field.type


@cache
def _attack_parts() -> dict[Any, type[Struct]]:
    attack = next(field.type for field in structs.fields(Run) if field.name == "attack")
    return {closed.tag(model): _part(model) for model in closed.models(attack)}
