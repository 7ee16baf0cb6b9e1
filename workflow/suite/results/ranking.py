"""Ranks of methods over several settings: Friedman's test, and Nemenyi's critical difference between mean ranks (Demšar 2006)."""

from dataclasses import dataclass

import numpy as np
from scipy.stats import friedmanchisquare, rankdata, studentized_range

LEAST = 5  # settings below which ranks say too little
LEVEL = 0.05


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """Methods by mean rank (1 is best) over so many settings; mean ranks closer than `critical` are not told apart at the 5 % level."""

    names: tuple[str, ...]
    ranks: tuple[float, ...]
    settings: int
    p: float
    critical: float

    @property
    def groups(self) -> list[tuple[int, int]]:
        """First and last place of every largest run of two methods or more that are not told apart."""
        spans = []
        for first in range(len(self.ranks)):
            last = max(j for j in range(first, len(self.ranks)) if self.ranks[j] - self.ranks[first] <= self.critical)
            if last > first and (not spans or last > spans[-1][1]):
                spans.append((first, last))
        return spans


def critical_difference(methods: int, settings: int, level: float = LEVEL) -> float:
    """Nemenyi's: the studentized range quantile over sqrt(2), times the standard error of a difference of mean ranks."""
    quantile = float(studentized_range.ppf(1 - level, methods, np.inf)) / np.sqrt(2)
    return float(quantile * np.sqrt(methods * (methods + 1) / (6 * settings)))


def rank(values: dict[str, list[float]]) -> Ranking | None:
    """Method -> its number in every setting (higher is better); `None` with fewer than three methods or LEAST settings."""
    if len(values) < 3 or len(next(iter(values.values()))) < LEAST:
        return None
    table = np.array(list(values.values()))
    mean = rankdata(-table, axis=0).mean(1)
    order = np.argsort(mean, kind="stable")
    names = list(values)
    constant = bool((table == table[0]).all())  # then there is nothing to test
    return Ranking(
        names=tuple(names[i] for i in order),
        ranks=tuple(float(mean[i]) for i in order),
        settings=table.shape[1],
        p=1.0 if constant else float(friedmanchisquare(*table).pvalue),
        critical=critical_difference(*table.shape),
    )
