"""YAML files and their JSON schemas, with messages for people: the file, the key, what is wrong, what is allowed."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import yaml
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from methods.core.errors import UserError
from methods.core.run_spec import Spec, expand

FOLDER = Path(__file__).resolve().parents[2] / "schemas"


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # a base that is looked up
    """YAML without keys that stand twice, of which the first would have no effect."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys: set[Any] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in keys:
                raise yaml.constructor.ConstructorError(None, None, f"the key '{key.value}' stands twice", key.start_mark)
            keys.add(key.value if isinstance(key, yaml.ScalarNode) else id(key))
        mapping: dict[Any, Any] = super().construct_mapping(node, deep)
        return mapping


def read_yaml(path: Path) -> Any:
    """The content of a YAML file; what makes it unreadable is said in one line."""
    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        at = f" at line {mark.line + 1}" if mark else ""
        raise UserError(f"{path}: is not YAML{at} ({getattr(error, 'problem', None) or error})") from None


def expanded(part: Mapping[str, Any] | None, *, source: str | Path, at: str) -> Spec:
    """A part of a Run without dotted keys; two keys that contradict each other are one clear message."""
    try:
        return expand(part or {})
    except UserError as error:
        raise UserError(f"{source}: {at}: {error}") from None


@cache
def _schemas() -> dict[str, dict[str, Any]]:
    return {path.name.split(".")[0]: read_yaml(path) for path in sorted(FOLDER.glob("*.schema.yaml"))}


@cache
def _validator(name: str) -> jsonschema.Draft202012Validator:
    resources = ((key, DRAFT202012.create_resource(rules)) for key, rules in _schemas().items())
    registry: Registry[Any] = Registry().with_resources(resources)
    return jsonschema.Draft202012Validator(_schemas()[name], registry=registry)


def check(value: Any, name: str, *, source: str | Path, at: str = "") -> None:
    """Raise a UserError for all keys that `value` misses under the schema `name`, or else for the first thing that it does not allow."""
    errors = sorted(_validator(name).iter_errors(_without_none(value)), key=lambda error: list(map(str, error.path)))
    if missing := list({_message(error, at): None for error in errors if error.validator == "required"}):
        raise UserError(f"{source}: {'; '.join(missing)}")
    if errors:
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        raise UserError(f"{source}: {_message(errors[0], at)}{more}")


def _without_none(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_none(item) for key, item in value.items() if item is not None}
    return [_without_none(item) for item in value] if isinstance(value, list | tuple) else value


def _message(error: jsonschema.ValidationError, at: str) -> str:
    where = at
    for step in error.absolute_path:
        where += f"[{step}]" if isinstance(step, int) else f".{step}" if where else str(step)
    where = f"{where}: " if where else ""
    rule, value = error.schema, error.instance
    if error.validator == "additionalProperties" and isinstance(rule.get("additionalProperties"), bool):
        known = sorted(rule.get("properties", {}))
        unknown = ", ".join(f"'{key}'" for key in value if key not in known)
        return f"{where}unknown key {unknown}; allowed: {', '.join(known)}"
    if error.validator == "required":
        missing = ", ".join(f"'{key}'" for key in rule["required"] if key not in value)
        return f"{where}missing key {missing}"
    allowed = rule.get("x-allowed") or _allowed(rule)
    return f"{where}{value!r} is not allowed; allowed: {allowed}" if allowed else f"{where}{error.message}"


def _allowed(rule: Mapping[str, Any]) -> str:
    if "enum" in rule:
        return ", ".join(map(str, rule["enum"]))
    if "const" in rule:
        return str(rule["const"])
    words = [f"a value of type {rule['type']}"] if isinstance(rule.get("type"), str) else []
    bounds = [("minimum", "at least"), ("exclusiveMinimum", "above"), ("maximum", "at most"), ("minLength", "longer than")]
    bounds += [("exclusiveMaximum", "below"), ("minItems", "items: at least"), ("maxItems", "items: at most")]
    words += [f"{text} {rule[key]}" for key, text in bounds if key in rule]
    return ", ".join(words)
