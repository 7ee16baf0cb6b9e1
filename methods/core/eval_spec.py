"""What an evaluation is: attack, norm, radius, examples, seed, block size. A value, checked when it is made; torch-free.

An evaluation has an identity of its own, apart from the training Run: other attack settings never retrain. As JSON:

    {"attack": "standard", "norm": "Linf", "eps": "8/255", "examples": 1000, "seed": 0, "block": 250}

`attack` is "standard" (AutoAttack as published: APGD-CE, APGD-T, FAB-T, Square), "clean" (none), "pgd" (10 steps, quick), or an object:
{"version": "custom", "attacks": [...], "apgd_iter": n, "fab_iter": n, "square_queries": n, "targets": n, "restarts": n} or
{"version": "pgd", "steps": n, "step": fraction of eps}.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from methods.core.errors import UserError
from methods.core.radius import radius

STANDARD = ("apgd-ce", "apgd-t", "fab-t", "square")
ATTACKS = ("apgd-ce", "apgd-dlr", "apgd-t", "fab", "fab-t", "square")
NORMS = ("Linf", "L2")
KNOBS = {
    "standard": (),
    "clean": (),
    "custom": ("attacks", "apgd_iter", "fab_iter", "square_queries", "targets", "restarts"),
    "pgd": ("steps", "step"),
}


@dataclass(frozen=True, kw_only=True)
class Attack:
    """The attacks in order and their budgets; the defaults are those of AutoAttack's standard version and of the paper's validation PGD."""

    version: str = "standard"
    attacks: tuple[str, ...] = STANDARD
    apgd_iter: int = 100
    fab_iter: int = 100
    square_queries: int = 5000
    targets: int = 9
    restarts: int = 1
    steps: int = 10
    step: float = 0.25

    @property
    def names(self) -> tuple[str, ...]:
        """The attacks in the order in which they are run."""
        return {"clean": (), "pgd": ("pgd",)}.get(self.version, self.attacks)

    def cost(self, name: str) -> int:
        """At most so many forward passes per example (a gradient counts as one more); an attack that succeeds early costs less."""
        passes = {
            "apgd-t": 2 * self.apgd_iter * self.targets,
            "fab": 3 * self.fab_iter * self.restarts,
            "fab-t": 3 * self.fab_iter * self.targets,
            "square": self.square_queries,
            "pgd": 2 * self.steps,
        }
        return passes.get(name, 2 * self.apgd_iter * self.restarts)

    def to_json(self) -> str | dict[str, Any]:
        if self == Attack(version=self.version) and self.version != "custom":
            return self.version
        chosen = {name: getattr(self, name) for name in KNOBS[self.version]}
        return {"version": self.version} | {k: list(v) if isinstance(v, tuple) else v for k, v in chosen.items()}


@dataclass(frozen=True, kw_only=True)
class EvalSpec:
    """One evaluation. `examples` None is the whole test set; `block` consecutive examples are attacked together, with their own seed."""

    attack: Attack = Attack()
    norm: str = "Linf"
    eps: str | float = "8/255"
    examples: int | None = None
    seed: int = 0
    block: int = 250

    @property
    def radius(self) -> float:
        return radius(self.eps)

    def count(self, available: int) -> int:
        """How many test examples are evaluated, of those that there are."""
        if self.examples is not None and self.examples > available:
            raise UserError(
                f"evaluation key 'examples: {self.examples}': the test set has {available} images; ask for at most that, or for \"all\""
            )
        return available if self.examples is None else self.examples

    def blocks(self, count: int) -> int:
        return math.ceil(count / self.block)

    def block_seed(self, number: int) -> int:
        """The seed of a block: a function of the evaluation's seed and of the block's number, and of nothing else."""
        return int(hashlib.sha256(f"{self.seed}:{number}".encode()).hexdigest()[:8], 16) & 0x7FFFFFFF

    def to_json(self) -> dict[str, Any]:
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        return plain | {"attack": self.attack.to_json(), "examples": self.examples or "all"}

    def canonical(self, *without: str) -> str:
        """One line of JSON for hashing, without the named keys."""
        kept = {k: v for k, v in self.to_json().items() if k not in without}
        return json.dumps(kept, sort_keys=True, separators=(",", ":"))


def parse(value: str | Mapping[str, Any]) -> EvalSpec:
    """An EvalSpec from JSON text or from a mapping; every problem is a UserError that names the key."""
    if isinstance(value, str):
        text = value
        try:
            value = json.loads(text)
        except json.JSONDecodeError as error:
            raise UserError(f"the evaluation spec is not JSON ({error}): {text[:200]}") from error
    if not isinstance(value, Mapping):
        raise UserError(f"the evaluation spec must be an object with the keys {_list(_keys())}, not {value!r}")
    _known(value, _keys(), "evaluation")
    given = dict(value)
    attack = _attack(given.pop("attack", "standard"))
    if given.get("examples") == "all":
        given["examples"] = None
    spec = EvalSpec(attack=attack, **given)
    _whole(spec.examples, "examples", least=1, optional=True, also='or "all"')
    _whole(spec.block, "block", least=1)
    _whole(spec.seed, "seed", least=0)
    _one_of(spec.norm, "norm", NORMS)
    _check_radius(spec)
    return spec


def _attack(value: Any) -> Attack:
    if isinstance(value, str):
        value = {"version": value}
        if value["version"] == "custom":
            raise UserError('evaluation key \'attack: "custom"\' needs its settings: {"version": "custom", "attacks": [...], ...}')
    if not isinstance(value, Mapping):
        raise UserError(f"evaluation key 'attack' must be one of {_list(KNOBS)} or an object, not {value!r}")
    version = value.get("version", "custom")
    _one_of(version, "attack.version" if len(value) > 1 else "attack", tuple(KNOBS))
    _known(value, ("version", *KNOBS[version]), f"attack (version {version})")
    given = {k: v for k, v in value.items() if k != "version"}
    if "attacks" in given:
        names = given["attacks"]
        if not isinstance(names, list | tuple) or not names or len(set(names)) < len(names):
            raise UserError(f"evaluation key 'attack.attacks' must be a list of distinct attacks of {_list(ATTACKS)}, not {names!r}")
        for name in names:
            _one_of(name, "attack.attacks", ATTACKS)
        given["attacks"] = tuple(names)
    attack = Attack(version=version, **given)
    for key in ("apgd_iter", "fab_iter", "square_queries", "targets", "restarts", "steps"):
        _whole(getattr(attack, key), f"attack.{key}", least=1)
    if isinstance(attack.step, bool) or not isinstance(attack.step, int | float) or not 0 < attack.step < math.inf:
        raise UserError(f"evaluation key 'attack.step: {attack.step!r}' must be a positive fraction of eps")
    return attack


def _check_radius(spec: EvalSpec) -> None:
    try:
        ok = not isinstance(spec.eps, bool) and 0 <= spec.radius < math.inf
    except (ValueError, ZeroDivisionError):
        ok = False
    if not ok:
        raise UserError(f"evaluation key 'eps: {spec.eps!r}' must be a number or a fraction such as \"8/255\", not negative")
    if spec.radius == 0 and spec.attack.names:
        raise UserError("evaluation key 'eps: 0' leaves nothing to attack; use 'attack: \"clean\"'")
    if spec.norm != "Linf" and spec.attack.version == "pgd":
        raise UserError(f"evaluation key 'norm: {spec.norm}': the pgd attack knows Linf only")


def _keys() -> tuple[str, ...]:
    return tuple(f.name for f in fields(EvalSpec))


def _list(names: Any) -> str:
    return ", ".join(names)


def _known(value: Mapping[str, Any], allowed: tuple[str, ...], what: str) -> None:
    for key in value:
        if key not in allowed:
            raise UserError(f"unknown {what} key '{key}'; allowed: {_list(allowed)}")


def _one_of(value: Any, key: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise UserError(f"evaluation key '{key}: {value}' is not known; allowed: {_list(allowed)}")


def _whole(value: Any, key: str, *, least: int, optional: bool = False, also: str = "") -> None:
    if value is None and optional:
        return
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise UserError(f"evaluation key '{key}: {value!r}' must be a whole number of at least {least} {also}".rstrip())
