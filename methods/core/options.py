"""The options of a method: what its RECIPE mentions anywhere is what it takes, and of the kinds that stand there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Union

from msgspec import Struct, defstruct

from methods.core.closed import Closed
from methods.core.errors import UserError
from methods.core.run_spec import expand


def options_model(recipe: Mapping[str, Any]) -> type[Struct]:
    """The model of the options that a RECIPE mentions: in its settings, its phases, and its conditions."""
    return _model("options", [part["options"] for part in _parts(recipe) if isinstance(part.get("options"), Mapping)])


def _parts(recipe: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield expand(recipe.get("run", {}))
    for condition, override in recipe.get("when", ()):
        yield expand({key: value[0] if isinstance(value, list | tuple) and value else value for key, value in condition.items()})
        yield expand(override)
    for phase in recipe.get("phases", {}).values():
        yield expand(phase.get("run", {}))


def _model(name: str, mentions: list[Mapping[str, Any]]) -> type[Struct]:
    fields = []
    for key in sorted({key for mention in mentions for key in mention}):
        if not key.isidentifier():
            raise UserError(f"RECIPE: {name}: '{key}' cannot be an option; allowed: a name of letters, digits and underscores")
        fields.append((key, _kind(f"{name}.{key}", [mention[key] for mention in mentions if key in mention]), None))
    return defstruct(name.rpartition(".")[2], fields, bases=(Closed,))


def _kind(name: str, values: list[Any]) -> Any:
    """What may stand where these values stand; a whole number says that any number may."""
    kinds: dict[Any, None] = {}
    for value in values:
        if isinstance(value, Mapping):
            continue
        if isinstance(value, bool | str):
            kinds[type(value)] = None
        elif isinstance(value, int | float):
            kinds[float] = None
        elif isinstance(value, list | tuple):
            kinds[list] = None
    if nested := [value for value in values if isinstance(value, Mapping)]:
        kinds[_model(name, nested)] = None
    return Union[(*kinds, None)] if kinds else Any  # noqa: UP007 (a computed union)
