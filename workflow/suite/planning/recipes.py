"""Recipes: the settings each method declares in its own file, read without importing it.

A recipe is the module-level literal `RECIPE` of a method's file (methods/core/method_files.py). It is parsed with
`ast.literal_eval`, so planning stays free of torch and of side effects.
"""

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec import Struct

from methods.core.errors import UserError
from methods.core.method_files import located
from methods.core.options import options_model
from methods.core.run_check import check_condition, check_keys, check_part
from methods.core.run_spec import expand
from workflow.suite.planning import schema

# The methods the paper's tables name. One whose file is missing is "not available"; any other unknown name is a mistake.
EXPECTED = ("binary_subnet", "at", "binaryconnect", "trades", "hydra", "rst", "atmc", "flyingbird", "bcs")


@dataclass(frozen=True, kw_only=True)
class Phase:
    """One training phase of a method: whose result it starts from, which keys it does not depend on, its settings."""

    parent: str | None = None
    ignores: tuple[str, ...] = ()
    run: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What a method file declares; `when` is a list of (condition, override) pairs, applied in order; `options` is the
    model of those that the file mentions; `reads_init` says that its class draws weights as 'init' says; `deviations` are (what, what the
    official code or the paper does, what is done here, why)."""

    method: str
    path: Path
    version: int
    name: str
    cites: str
    run: Mapping[str, Any]
    options: type[Struct]
    when: tuple[tuple[Mapping[str, Any], Mapping[str, Any]], ...] = ()
    phases: Mapping[str, Phase] = field(default_factory=dict)
    in_epochs: tuple[str, ...] = ()
    in_steps: tuple[str, ...] = ()
    deviations: tuple[tuple[str, str, str, str], ...] = ()
    reads_init: bool = False


def load_all(root: Path) -> dict[str, Recipe]:
    """Every recipe, by method name: of the repository at `root`, and of installed packages. One that lacks its RECIPE is an error."""
    return {name: load(name, method.path, root=root) for name, method in located(root).items()}


def load(name: str, path: Path, *, root: Path) -> Recipe:
    """The recipe of one method file."""
    shown = path.relative_to(root) if path.is_relative_to(root) else path
    tree = _tree(path, shown)
    literal = _literal(tree, shown)
    if not isinstance(literal, dict):
        raise UserError(f"{shown}: RECIPE is not a dict")
    literal = {**literal, "run": expand(literal.get("run", {})), "when": _pairs(literal.get("when", []))}
    phases = literal.get("phases")
    if isinstance(phases, dict):
        literal["phases"] = {
            name: {**phase, "run": expand(phase.get("run", {}))} if isinstance(phase, dict) else phase for name, phase in phases.items()
        }
    schema.check(literal, "recipe", source=shown, at="RECIPE")
    options = options_model(literal)
    _check_parts(literal, options, shown)
    return Recipe(
        method=name,
        path=shown,
        version=literal["version"],
        name=literal["name"],
        cites=literal["cites"],
        run=literal["run"],
        options=options,
        when=tuple((condition, override) for condition, override in literal["when"]),
        phases=_phases(literal.get("phases", {}), shown),
        in_epochs=tuple(literal.get("in_epochs", ())),
        in_steps=tuple(literal.get("in_steps", ())),
        deviations=tuple(tuple(entry) for entry in literal.get("deviations", ())),
        reads_init=_reads_init(tree),
    )


def _tree(path: Path, shown: Path) -> ast.Module:
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, UnicodeDecodeError, ValueError) as error:
        raise UserError(f"{shown}: cannot be read as Python ({error})") from None


def _reads_init(tree: ast.Module) -> bool:
    """Whether the file takes `Method`, or a class of it, and leaves the drawing of weights to it: no `initialise` of its own."""
    classes = [base for node in tree.body if isinstance(node, ast.ClassDef) for base in node.bases]
    classes += [node.value for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "METHOD"]
    plain = any(ast.unparse(name).split(".")[-1] == "Method" for name in classes)
    return plain and not any(isinstance(node, ast.FunctionDef) and node.name == "initialise" for node in ast.walk(tree))


def _literal(tree: ast.Module, shown: Path) -> Any:
    for node in tree.body:
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            targets, value = [node.target], node.value
        else:
            continue
        if any(isinstance(target, ast.Name) and target.id == "RECIPE" for target in targets):
            try:
                return ast.literal_eval(value)
            except (ValueError, TypeError):
                raise UserError(
                    f"{shown}: RECIPE (line {node.lineno}) is not a plain literal: use only numbers, strings, lists, dicts"
                ) from None
    raise UserError(f"{shown}: has no RECIPE; a method file declares its settings in a module-level literal RECIPE = {{...}}")


def _pairs(when: Any) -> Any:
    if not isinstance(when, list | tuple):
        return when
    whole = [isinstance(pair, list | tuple) and len(pair) == 2 and isinstance(pair[1], dict) for pair in when]
    return [[pair[0], expand(pair[1])] if good else pair for pair, good in zip(when, whole, strict=True)]


def _check_parts(literal: Mapping[str, Any], options: type[Struct], shown: Path) -> None:
    """Refuse settings, conditions and lists of keys that no Run of this method can have."""
    check_part(literal["run"], source=shown, at="RECIPE.run")
    for number, (condition, override) in enumerate(literal["when"]):
        check_condition(condition, source=shown, at=f"RECIPE.when[{number}]")
        check_part(override, source=shown, at=f"RECIPE.when[{number}]")
    lists = {f"RECIPE.{name}": literal.get(name, ()) for name in ("in_epochs", "in_steps")}
    for name, phase in literal.get("phases", {}).items():
        check_part(phase.get("run", {}), source=shown, at=f"RECIPE.phases.{name}.run")
        lists[f"RECIPE.phases.{name}.ignores"] = phase.get("ignores", ())
    for at, keys in lists.items():
        check_keys(keys, source=shown, at=at, options=[options])


def _phases(literal: Mapping[str, Any], shown: Path) -> dict[str, Phase]:
    for name, phase in literal.items():
        parent, before = phase.get("parent"), list(literal)[: list(literal).index(name)]
        if parent is not None and parent not in before:
            allowed = ", ".join(before) or "none, since it is the first"
            raise UserError(f"{shown}: RECIPE.phases.{name}.parent: '{parent}' is no phase before it; allowed: {allowed}")
    return {
        name: Phase(parent=phase.get("parent"), ignores=tuple(phase.get("ignores", ())), run=phase.get("run", {}))
        for name, phase in literal.items()
    }
