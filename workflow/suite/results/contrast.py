"""Whether a sum of measured numbers, each times a factor, differs from zero: a difference of two cells, of two gains, of two ranges.

What is tested is chance in the test images and, where there are several seeds, in the trainings. Cells over the same images are compared
image by image. Two cells of one seed each: exact McNemar. Else Student's t: the variance is that of the per-image sums, plus that between
seeds of each cell, with Satterthwaite's degrees of freedom. With one seed nothing is known of other trainings.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr, stdtrit

from workflow.suite.results import paired, stats
from workflow.suite.results.measure import Measured

Terms = Sequence[tuple[float, Measured]]


@dataclass(frozen=True, kw_only=True)
class Contrast:
    """The value as a fraction, its two-sided p-value against zero; and where the test is Student's, standard error and freedom."""

    value: float
    p: float
    error: float | None = None
    freedom: float | None = None

    def interval(self, level: float = paired.LEVEL) -> tuple[float, float] | None:
        """Student's interval; `None` where the test is exact and has none."""
        if self.error is None:
            return None
        half = 0.0 if self.error == 0 else float(stdtrit(self.freedom, 1 - level / 2)) * self.error
        return self.value - half, self.value + half

    def smallest_difference(self, level: float = paired.LEVEL, power: float = paired.POWER) -> float | None:
        """What Student's test with this error finds with this power, (t(1 - level / 2) + t(power)) errors; `None` as above."""
        if not self.error:
            return None
        return float(stdtrit(self.freedom, 1 - level / 2) + stdtrit(self.freedom, power)) * self.error


def test(terms: Terms, constant: float = 0.0) -> Contrast:
    """The contrast `constant` + the sum of factor times value; every cell must have a number."""
    value = constant + math.fsum(factor * item.value for factor, item in terms)
    pair = _pair(terms, constant)
    if pair:
        return Contrast(value=value, p=paired.mcnemar(*discordant(*pair)))
    variances = [*_image_variances(terms), *_seed_variances(terms)]
    total = math.fsum(variance for variance, _ in variances)
    if total == 0:
        return Contrast(value=value, p=float(abs(value) < 1e-12), error=0.0)
    freedom = total**2 / math.fsum(variance**2 / df for variance, df in variances if variance)
    error = math.sqrt(total)
    return Contrast(value=value, p=float(2 * stdtr(freedom, -abs(value) / error)), error=error, freedom=freedom)


def discordant(first: Measured, second: Measured) -> tuple[int, int]:
    """Images that only the first, and only the second, is right on; one seed each."""
    a, b = first.outcomes.right[0], second.outcomes.right[0]
    return int((a & ~b).sum()), int((b & ~a).sum())


def same_images(first: Measured, second: Measured) -> bool:
    """Whether two cells can be compared image by image."""
    return bool(first.outcomes and second.outcomes and first.outcomes.images == second.outcomes.images)


def _pair(terms: Terms, constant: float) -> tuple[Measured, Measured] | None:
    """The two cells of a plain difference, the subtracted one first, where the exact test applies."""
    if constant or len(terms) != 2 or terms[0][0] != -terms[1][0]:
        return None
    (_, first), (_, second) = sorted(terms, key=lambda term: term[0])
    if not same_images(first, second) or first.outcomes.seeds > 1 or second.outcomes.seeds > 1:
        return None
    return first, second


def _image_variances(terms: Terms) -> list[tuple[float, float]]:
    """Variance and degrees of freedom from the choice of images: one entry per set of images, and per cell without outcomes."""
    entries, sums = [], {}
    for factor, item in terms:
        if item.outcomes:
            sums[item.outcomes.images] = sums.get(item.outcomes.images, 0.0) + factor * item.outcomes.by_image
        else:  # counts alone: independent of everything else
            n = item.n
            entries.append((factor**2 * item.value * (1 - item.value) / n, n - 1))
    return entries + [(float(np.var(total, ddof=1)) / len(total), len(total) - 1) for total in sums.values() if len(total) > 1]


def _seed_variances(terms: Terms) -> list[tuple[float, float]]:
    """Variance and degrees of freedom from the choice of seeds, of cells that have several."""
    spreads = [(factor, len(item.values), stats.sd(item.values)) for factor, item in terms]
    return [(factor**2 * sd**2 / seeds, seeds - 1) for factor, seeds, sd in spreads if sd is not None]
