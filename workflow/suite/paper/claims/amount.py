"""Numbers that remember the cells they are made of, so that a difference between them can be tested image by image."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import total_ordering


@total_ordering
@dataclass(frozen=True, eq=False)
class Amount:
    """Percent: a constant plus the sum of factor times cell. Compares, sorts and prints as its value."""

    value: float
    parts: Mapping[str, float] = field(default_factory=dict)
    constant: float = 0.0

    def _plus(self, other: Amount | float, sign: float) -> Amount:
        other = other if isinstance(other, Amount) else Amount(float(other), {}, float(other))
        parts = dict(self.parts)
        for address, factor in other.parts.items():
            parts[address] = parts.get(address, 0.0) + sign * factor
        kept = {address: factor for address, factor in parts.items() if factor}
        return Amount(self.value + sign * other.value, kept, self.constant + sign * other.constant)

    def __add__(self, other: Amount | float) -> Amount:
        return self._plus(other, 1.0)

    __radd__ = __add__

    def __sub__(self, other: Amount | float) -> Amount:
        return self._plus(other, -1.0)

    def __rsub__(self, other: float) -> Amount:
        return -self + other

    def __neg__(self) -> Amount:
        return Amount(-self.value, {address: -factor for address, factor in self.parts.items()}, -self.constant)

    def __abs__(self) -> Amount:
        """The sign is taken as it stands; which side is larger is not tested again."""
        return self if self.value >= 0 else -self

    def __float__(self) -> float:
        return self.value

    def __format__(self, form: str) -> str:
        return format(self.value, form)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Amount | int | float) and self.value == float(other)

    def __lt__(self, other: Amount | float) -> bool:
        return self.value < float(other)

    def __hash__(self) -> int:
        return hash(self.value)


def of_cell(address: str, value: float) -> Amount:
    """The number of one cell."""
    return Amount(value, {address: 1.0})


def mean(amounts: Iterable[Amount]) -> float:
    """The mean of their values, to be shown."""
    values = [float(amount) for amount in amounts]
    return sum(values) / len(values)
