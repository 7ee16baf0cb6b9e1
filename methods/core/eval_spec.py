"""What an evaluation is: attack, norm, radius, examples, seed, block size. A closed value, checked when it is read; torch-free.

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
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta

from methods.core import closed
from methods.core.closed import Closed
from methods.core.errors import UserError
from methods.core.radius import radius

Name = Literal["apgd-ce", "apgd-dlr", "apgd-t", "fab", "fab-t", "square"]
Norm = Literal["Linf", "L2"]
ATTACKS, NORMS = get_args(Name), get_args(Norm)
Count = Annotated[int, Meta(ge=1)]
STANDARD: tuple[Name, ...] = ("apgd-ce", "apgd-t", "fab-t", "square")
SOURCE = "evaluation"


class Custom(Closed, frozen=True, tag_field="version", tag="custom"):
    """Attacks of AutoAttack in order, and their budgets; the defaults are those of its standard version."""

    attacks: Annotated[tuple[Name, ...], Meta(min_length=1, description=f"a list of {', '.join(ATTACKS)}")] = STANDARD
    apgd_iter: Count = 100
    fab_iter: Count = 100
    square_queries: Count = 5000
    targets: Count = 9
    restarts: Count = 1

    def __post_init__(self) -> None:
        if len(set(self.attacks)) < len(self.attacks):
            raise ValueError(f"'attacks' names one of them twice: {', '.join(self.attacks)}; allowed: each once")

    @property
    def names(self) -> tuple[str, ...]:
        """The attacks in the order in which they are run."""
        return self.attacks

    @property
    def budget(self) -> Custom:
        """The settings of AutoAttack."""
        return self

    def cost(self, name: str) -> int:
        """At most so many forward passes per example (a gradient counts as one more); an attack that succeeds early costs less."""
        passes = {
            "apgd-t": 2 * self.apgd_iter * self.targets,
            "fab": 3 * self.fab_iter * self.restarts,
            "fab-t": 3 * self.fab_iter * self.targets,
            "square": self.square_queries,
        }
        return passes.get(name, 2 * self.apgd_iter * self.restarts)


class Standard(Closed, frozen=True, tag_field="version", tag="standard"):
    """AutoAttack as published."""

    @property
    def budget(self) -> Custom:
        return Custom()

    @property
    def names(self) -> tuple[str, ...]:
        return self.budget.names

    def cost(self, name: str) -> int:
        return self.budget.cost(name)


class Pgd(Closed, frozen=True, tag_field="version", tag="pgd"):
    """The paper's validation attack: quick, and weaker than AutoAttack."""

    steps: Count = 10
    step: Annotated[float, Meta(gt=0, le=1000, description="a positive fraction of eps")] = 0.25

    @property
    def names(self) -> tuple[str, ...]:
        return ("pgd",)

    def cost(self, name: str) -> int:
        return 2 * self.steps


class Clean(Closed, frozen=True, tag_field="version", tag="clean"):
    """No attack."""

    @property
    def names(self) -> tuple[str, ...]:
        return ()

    def cost(self, name: str) -> int:
        return 0


Attack = Standard | Clean | Custom | Pgd
VERSIONS = [str(closed.tag(model)) for model in closed.models(Attack)]


class EvalSpec(Closed, frozen=True):
    """One evaluation. `examples` "all" is the whole test set; `block` consecutive examples are attacked together, with their own seed."""

    attack: Attack = Standard()
    norm: Norm = "Linf"
    eps: Annotated[int | float | str, Meta(description='a number or a fraction such as "8/255", not negative')] = "8/255"
    examples: Annotated[Count | Literal["all"], Meta(description='a whole number, at least 1, or "all"')] = "all"
    seed: Annotated[int, Meta(ge=0)] = 0
    block: Count = 250

    def __post_init__(self) -> None:
        try:
            size = self.radius
        except (ValueError, ZeroDivisionError):
            size = math.nan
        if not 0 <= size < math.inf:
            raise ValueError(f'eps: {self.eps!r} is not allowed; allowed: a number or a fraction such as "8/255", not negative')
        if size == 0 and self.attack.names:
            raise ValueError("eps: 0 leaves nothing to attack; use 'attack: \"clean\"'")
        if self.norm != "Linf" and isinstance(self.attack, Pgd):
            raise ValueError(f"norm: {self.norm} is not known to the pgd attack; allowed: Linf, or a custom attack")

    @property
    def radius(self) -> float:
        return radius(self.eps)

    def count(self, available: int) -> int:
        """How many test examples are evaluated, of those that there are."""
        if self.examples == "all":
            return available
        if self.examples > available:
            raise UserError(f'{SOURCE}: examples: the test set has {available} images, not {self.examples}; ask for at most that, or "all"')
        return self.examples

    def blocks(self, count: int) -> int:
        return math.ceil(count / self.block)

    def block_seed(self, number: int) -> int:
        """The seed of a block: a function of the evaluation's seed and of the block's number, and of nothing else."""
        return int(hashlib.sha256(f"{self.seed}:{number}".encode()).hexdigest()[:8], 16) & 0x7FFFFFFF

    def to_json(self) -> dict[str, Any]:
        """Plain data; an attack without settings of its own is its name."""
        plain: dict[str, Any] = msgspec.to_builtins(self, builtin_types=(tuple,))
        attack = msgspec.to_builtins(self.attack)
        plain["attack"] = attack["version"] if self.attack in (Standard(), Clean(), Pgd()) else attack
        return plain

    def canonical(self, *without: str) -> str:
        """One line of JSON for hashing, without the named keys."""
        kept = {k: v for k, v in self.to_json().items() if k not in without}
        return json.dumps(kept, sort_keys=True, separators=(",", ":"))


def parse(value: str | Mapping[str, Any]) -> EvalSpec:
    """An EvalSpec from JSON text or from a mapping; every problem is a UserError that names the key and what is allowed."""
    data: Any = value
    if isinstance(value, str):
        try:
            data = json.loads(value)
        except (ValueError, RecursionError) as error:
            reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
            raise UserError(f"the evaluation spec is not JSON ({reason}): {value[:200]}") from None
    if isinstance(data, Mapping) and "attack" in data:
        data = {**data, "attack": _attack(data["attack"])}
    return closed.parse(data, EvalSpec, source=SOURCE)


def _attack(value: Any) -> Any:
    """The long form of an attack: a name becomes an object with a version, an object without one is a custom attack."""
    if value == "custom":
        raise UserError(f'{SOURCE}: attack: "custom" needs its settings: {{"version": "custom", "attacks": [...], ...}}')
    if isinstance(value, Mapping):
        return {"version": "custom", **value}
    if value in VERSIONS:
        return {"version": value}
    names = ", ".join(VERSIONS)
    raise UserError(f"{SOURCE}: attack: {value!r} is not allowed; allowed: {names}, or an object with the settings of one")
