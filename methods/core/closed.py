"""Values closed by a typed model: what fits is taken, what does not is one message with the file, the key and the allowed values."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import Meta, Struct, structs

from methods.core.errors import UserError

T = TypeVar("T")
WORDS = {int: "a whole number", float: "a number", str: "a text", bool: "true or false", list: "a list", dict: "a mapping"}
BOUNDS = (("ge", "at least"), ("gt", "above"), ("le", "at most"), ("lt", "below"), ("min_length", "at least so many:"))


class Closed(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of models: a key that the model does not have is refused. A field's `Meta(description=...)` words what it allows."""


class NotAllowed(UserError):
    """A value that does not fit its model; `key` is the dotted key of it, `reason` what is wrong and what is allowed."""

    def __init__(self, source: str | Path, key: str, reason: str):
        super().__init__(": ".join(part for part in (str(source), reason) if part))
        self.key, self.reason = key, reason


def parse(value: Any, kind: type[T], *, source: str | Path, at: str = "") -> T:
    """The value as the typed model says; else a NotAllowed that names the first thing that does not fit."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError:
        key, reason = _explain(value, kind, at)
        raise NotAllowed(source, key, reason) from None


def models(kind: Any) -> list[type[Struct]]:
    """The models that a type names: one, or several that a tag tells apart; none where it is no model."""
    bare, _ = _bare(kind)
    return [member for member in _members(bare) if isinstance(member, type) and issubclass(member, Struct)]


def chosen(kind: Any, value: Mapping[str, Any]) -> type[Struct] | None:
    """The model that this mapping is meant to be: the only one, or the one of its tag."""
    candidates = models(kind)
    if len(candidates) == 1:
        return candidates[0]
    return next((model for model in candidates if value.get(tag_field(model)) == tag(model)), None)


def tag_field(model: type[Struct]) -> str:
    """The key by which models of a union are told apart ('' where there is none)."""
    return model.__struct_config__.tag_field or ""


def tag(model: type[Struct]) -> str | int | None:
    """What this model has at its tag field."""
    return model.__struct_config__.tag


def keys(model: type[Struct]) -> list[str]:
    """All keys of a model, its tag field among them."""
    return sorted([field.encode_name for field in structs.fields(model)] + ([tag_field(model)] if tag_field(model) else []))


def dotted_keys(model: type[Struct], prefix: str = "") -> Iterator[str]:
    """All keys of a model and of the models in it, dotted."""
    for field in structs.fields(model):
        yield prefix + field.encode_name
        for inner in models(field.type):
            yield from dotted_keys(inner, f"{prefix}{field.encode_name}.")


def missing(value: Mapping[str, Any], kind: Any, prefix: str = "") -> list[str]:
    """The dotted keys that a model requires and that a mapping does not have."""
    model = chosen(kind, value)
    if model is None:
        return [prefix + tag_field(candidate) for candidate in models(kind)[:1] if tag_field(candidate) not in value]
    absent = []
    for field in structs.fields(model):
        item = value.get(field.encode_name)
        if item is None:
            absent += [prefix + field.encode_name] if field.required else []
        elif isinstance(item, Mapping) and models(field.type):
            absent += missing(item, field.type, f"{prefix}{field.encode_name}.")
    return absent


def _explain(value: Any, kind: Any, at: str) -> tuple[str, str]:
    """The key of the first thing that does not fit, and the message about it."""
    bare, wording = _bare(kind)
    if models(bare) and isinstance(value, Mapping):
        return _explain_mapping(value, bare, at)
    for step, item, sub in _children(value, bare):
        if not _fits(item, sub):
            return _explain(item, sub, at + step)
    return at, _at(at, f"{value!r} is not allowed; allowed: {wording or _words(kind)}")


def _explain_mapping(value: Mapping[str, Any], kind: Any, at: str) -> tuple[str, str]:
    model = chosen(kind, value)
    if model is None:  # of several, none has this tag
        name, tags = tag_field(models(kind)[0]), ", ".join(str(tag(candidate)) for candidate in models(kind))
        if name not in value:
            return _under(at, name), _at(at, f"missing key '{name}'; allowed: {tags}")
        return _under(at, name), _at(_under(at, name), f"{value[name]!r} is not allowed; allowed: {tags}")
    if unknown := [key for key in value if key not in keys(model)]:
        listed = ", ".join(f"'{key}'" for key in unknown)
        return _under(at, unknown[0]), _at(at, f"unknown key {listed}; allowed: {', '.join(keys(model)) or 'none'}")
    for field in structs.fields(model):
        if field.encode_name in value and not _fits(value[field.encode_name], field.type):
            return _explain(value[field.encode_name], field.type, _under(at, field.encode_name))
    if absent := missing(value, model):
        return _under(at, absent[0]), _at(at, f"missing key {', '.join(repr(key) for key in absent)}")
    return at, _at(at, _complaint(value, kind))  # what the model itself checks of its keys together


def _complaint(value: Any, kind: Any) -> str:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        return str(error)
    raise AssertionError("asked to explain what fits")


def _fits(value: Any, kind: Any) -> bool:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True


def _children(value: Any, kind: Any) -> Iterator[tuple[str, Any, Any]]:
    """The items of a list or mapping with the types they should have, of the member of a union that has items."""
    for member in _members(kind):
        origin, arguments = get_origin(member), get_args(member)
        if origin is dict and isinstance(value, Mapping):
            yield from ((f".{key}", item, arguments[1]) for key, item in value.items())
        elif origin in (list, tuple) and isinstance(value, list | tuple):
            fixed = origin is tuple and arguments[-1] is not Ellipsis
            if not fixed or len(arguments) == len(value):
                kinds = arguments if fixed else [arguments[0]] * len(value)
                yield from ((f"[{i}]", item, sub) for i, (item, sub) in enumerate(zip(value, kinds, strict=True)))


def _bare(kind: Any) -> tuple[Any, str | None]:
    """A type without its annotations and without None, and the wording that came with it."""
    wording: str | None = None
    while True:
        if get_origin(kind) is Annotated:
            kind, *notes = get_args(kind)
            wording = next((note.description for note in notes if isinstance(note, Meta) and note.description), wording)
            continue
        members = [member for member in _members(kind) if member is not type(None)]
        if len(members) == len(_members(kind)):
            return kind, wording
        kind = members[0] if len(members) == 1 else Union[tuple(members)]  # noqa: UP007 (a computed union)


def _members(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)


def _words(kind: Any) -> str:
    """A type in words."""
    if get_origin(kind) is Annotated:
        inner, *notes = get_args(kind)
        bounds = [f"{text} {getattr(note, key)}" for note in notes for key, text in BOUNDS if getattr(note, key, None) is not None]
        return ", ".join([_words(inner), *bounds])
    bare, wording = _bare(kind)
    if wording or get_origin(bare) is Annotated:
        return wording or _words(bare)
    if get_origin(bare) is Literal:
        return ", ".join(map(str, get_args(bare)))
    if candidates := models(bare):
        return f"a mapping of {', '.join(dict.fromkeys(key for model in candidates for key in keys(model)))}"
    if len(_members(bare)) > 1:
        return " or ".join(_words(member) for member in _members(bare))
    return WORDS.get(get_origin(bare) or bare, "another value")


def _under(at: str, key: str) -> str:
    return f"{at}.{key}" if at else key


def _at(at: str, reason: str) -> str:
    return f"{at}: {reason}" if at else reason
