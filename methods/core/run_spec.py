"""A Run spec as a value: nested plain data, its canonical text, its id and its readable slug.

Two specs are the same Run exactly when their canonical JSON is the same. `None` is dropped, so a knob that is added later
renames nothing; 1 and 1.0 are one number, so a YAML author cannot fork a Run by writing a dot.
"""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, TypeGuard

from methods.core.errors import UserError

Spec = dict[str, Any]
ID_LENGTH = 12


def normalise(value: Any) -> Any:
    """The same data with `None` entries of mappings dropped, integral floats as ints and tuples as lists."""
    if isinstance(value, str | int):  # first, because most are: asking for a Mapping is slow, and planning asks often
        return value
    if isinstance(value, Mapping):
        return {str(key): normalise(item) for key, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [normalise(item) for item in value]
    if isinstance(value, float):
        if not math.isfinite(value):
            raise UserError(f"a Run cannot hold the number {value}: write a finite one")
        return int(value) if value.is_integer() else value
    return value


def canonical(spec: Mapping[str, Any]) -> str:
    """The one text of a spec: sorted keys, no spaces."""
    return json.dumps(normalise(spec), sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def identity(spec: Mapping[str, Any]) -> str:
    """The id of a spec: the first hex digits of the SHA-256 of its canonical text."""
    return text_identity(canonical(spec))


def text_identity(text: str) -> str:
    """The id of a spec whose canonical text is at hand."""
    return hashlib.sha256(text.encode()).hexdigest()[:ID_LENGTH]


def expand(flat: Mapping[str, Any]) -> Spec:
    """Nested form of a mapping whose keys may be dotted: {"train.lr": 1} -> {"train": {"lr": 1}}."""
    nested: Spec = {}
    for key, value in flat.items():
        put(nested, str(key), expand(value) if isinstance(value, Mapping) else value)
    return nested


def put(spec: Spec, key: str, value: Any) -> None:
    """Set a dotted key in place; a mapping is merged into what is already there."""
    *path, last = key.split(".")
    for step in path:
        spec = spec.setdefault(step, {})
        if not isinstance(spec, dict):
            raise UserError(f"'{key}' cannot be set: '{step}' has a value of its own")
    if isinstance(value, Mapping) and isinstance(spec.get(last), Mapping):
        spec[last] = merge(spec[last], value)
    else:
        spec[last] = value


def get(spec: Mapping[str, Any], key: str) -> Any:
    """The value at a dotted key, `None` where there is none."""
    for step in key.split("."):
        if not isinstance(spec, Mapping) or step not in spec:
            return None
        spec = spec[step]
    return spec


def drop(spec: Spec, key: str) -> None:
    """Remove a dotted key in place, if it is there."""
    *path, last = key.split(".")
    for step in path:
        spec = spec.get(step, {})
    spec.pop(last, None)


def merge(base: Mapping[str, Any], *overrides: Mapping[str, Any]) -> Spec:
    """A new spec: later mappings win, key by key.

    A sub-mapping that names something else (`attack: {name: ...}`) replaces the earlier one, because the step size of
    one attack means nothing to another.
    """
    merged = {key: merge(value) if _is_mapping(value) else value for key, value in base.items()}
    for override in overrides:
        for key, value in override.items():
            old = merged.get(key)
            if _is_mapping(value):
                kept = old if _is_mapping(old) and value.get("name", old.get("name")) == old.get("name") else {}
                merged[key] = merge(kept, value)
            else:
                merged[key] = value
    return merged


def _is_mapping(value: Any) -> TypeGuard[Mapping[str, Any]]:
    return type(value) is dict or (not isinstance(value, str | int | float) and isinstance(value, Mapping))


def matches(condition: Mapping[str, Any], spec: Mapping[str, Any]) -> bool:
    """Whether every (dotted) key of the condition has exactly that value; a listed value matches any of its items."""
    for key, wanted in condition.items():
        have = get(spec, key)
        if not (have in wanted if isinstance(wanted, list | tuple) else have == wanted):
            return False
    return True


def leaves(spec: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every (dotted key, value) of a nested mapping."""
    for key, value in spec.items():
        if isinstance(value, Mapping) and value:
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def slug(spec: Mapping[str, Any]) -> str:
    """What a person reads in the folder name; the id beside it is what tells Runs apart."""
    parts = [spec["method"], "plus" if get(spec, "options.plus") else None, spec.get("phase"), spec.get("dataset")]
    parts += [spec.get("arch"), "lbn" if spec.get("lbn") else None, spec.get("precision")]
    if get(spec, "attack.name") == "fgsm_atta" and spec.get("dataset") != "imagenet100":
        parts.append("fast")
    if spec.get("sparsity"):
        parts.append(f"r{spec['sparsity']:g}")
    if spec.get("p") is not None:
        parts.append(spec["p"] if spec["p"] == "global" else f"p{spec['p']:g}")
    if spec.get("eps") == 0:
        parts.append("vanilla")
    if get(spec, "train.compute") == "bf16":
        parts.append("bf16")
    return "-".join(str(part) for part in parts if part is not None)


def processes(spec: Mapping[str, Any], gpus_per_run: Mapping[str, int]) -> int:
    """How many processes train a Run: one per device of its batch norms, else what is said of its data set."""
    return int(spec["train"].get("bn_devices", gpus_per_run.get(spec["dataset"], 1)))
