"""What a claim demands of numbers, as a tree: comparisons joined by every, some, more than, at most.

Each comparison is answered yes, no or "cannot tell" (`None`); the tree is answered by Kleene's logic, so that a claim is decided only if
the undecided comparisons do not matter.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass

from workflow.suite.paper.claims.amount import Amount

Answer = bool | None


class Condition(ABC):
    """A node of the tree."""

    @abstractmethod
    def leaves(self) -> Iterator[Leaf]:
        """Its comparisons."""

    @abstractmethod
    def answer(self, of: Callable[[Leaf], Answer]) -> Answer:
        """Its answer, given those of its comparisons."""


@dataclass(frozen=True, eq=False)
class Leaf(Condition):
    """An amount is above zero, or (not strict) not below it."""

    amount: Amount
    strict: bool = True

    def leaves(self) -> Iterator[Leaf]:
        yield self

    def answer(self, of: Callable[[Leaf], Answer]) -> Answer:
        return of(self)

    @property
    def key(self) -> Hashable:
        """Equal for comparisons of the same cells."""
        return frozenset(self.amount.parts.items()), self.amount.constant, self.strict

    @property
    def plain(self) -> bool:
        """Whether the numbers as they are satisfy it."""
        return self.amount.value > 0 if self.strict else self.amount.value >= 0


@dataclass(frozen=True)
class Fact(Condition):
    """Something known, whatever the numbers."""

    holds: bool

    def leaves(self) -> Iterator[Leaf]:
        return iter(())

    def answer(self, of: Callable[[Leaf], Answer]) -> Answer:
        return self.holds


@dataclass(frozen=True)
class MoreThan(Condition):
    """More than `count` of the items hold."""

    count: float
    items: tuple[Condition, ...]

    def leaves(self) -> Iterator[Leaf]:
        for item in self.items:
            yield from item.leaves()

    def answer(self, of: Callable[[Leaf], Answer]) -> Answer:
        answers = [item.answer(of) for item in self.items]
        if sum(answer is True for answer in answers) > self.count:
            return True
        return None if sum(answer is not False for answer in answers) > self.count else False


@dataclass(frozen=True)
class Not(Condition):
    """The item does not hold."""

    item: Condition

    def leaves(self) -> Iterator[Leaf]:
        yield from self.item.leaves()

    def answer(self, of: Callable[[Leaf], Answer]) -> Answer:
        answer = self.item.answer(of)
        return None if answer is None else not answer


def above(one: Amount | float, other: Amount | float = 0.0) -> Leaf:
    """The one is above the other."""
    return Leaf(Amount(0.0) + one - other)


def not_below(one: Amount | float, other: Amount | float = 0.0) -> Leaf:
    """The one is at least the other."""
    return Leaf(Amount(0.0) + one - other, strict=False)


def every(items: Iterable[Condition]) -> Condition:
    """All hold."""
    items = tuple(items)
    return MoreThan(len(items) - 1, items) if items else Fact(True)


def some(items: Iterable[Condition]) -> Condition:
    """At least one holds."""
    return MoreThan(0, tuple(items))


def at_most(count: int, items: Iterable[Condition]) -> Condition:
    """No more than so many hold."""
    return Not(MoreThan(count, tuple(items)))
