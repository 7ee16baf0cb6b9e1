"""Two numbers over the same test images: exact McNemar test, paired bootstrap, and the smallest difference that could have been seen.

Of n images, `only_first` are those that the first network alone gets right, `only_second` those that the second alone does. If neither is
better, each of these discordant images is as likely of one kind as of the other; the images on which both agree say nothing.
"""

import math

import numpy as np
from scipy.special import bdtr, ndtri

LEVEL = 0.05
POWER = 0.8
DRAWS = 10_000


def mcnemar(only_first: int, only_second: int) -> float:
    """Two-sided exact p-value of a difference (McNemar 1947; binomial, without the chi-square approximation)."""
    return min(1.0, 2 * float(bdtr(min(only_first, only_second), only_first + only_second, 0.5)))


def bootstrap(only_first: int, only_second: int, n: int, *, level: float = LEVEL, draws: int = DRAWS, seed: int = 0) -> tuple[float, float]:
    """Percentile interval of second minus first over images drawn again with replacement.

    A draw of n images is a multinomial draw of its three kinds, so no image has to be touched.
    """
    chances = (only_first / n, only_second / n, 1 - (only_first + only_second) / n)
    counts = np.random.default_rng(seed).multinomial(n, chances, draws)
    low, high = np.quantile((counts[:, 1] - counts[:, 0]) / n, (level / 2, 1 - level / 2))
    return float(low), float(high)


def smallest_difference(discordant: float, n: int, *, level: float = LEVEL, power: float = POWER) -> float | None:
    """The difference that McNemar's test over n images finds with this power, where this share of images is discordant; `None` where no
    difference that leaves so few discordant images would be found.

    Solves d sqrt(n) = z(1 - level / 2) sqrt(q) + z(power) sqrt(q - d^2) for d (Miettinen 1968; Connor 1987).
    """
    if not 0 < discordant <= 1:
        return None
    a, b = float(ndtri(1 - level / 2)) * math.sqrt(discordant), float(ndtri(power))
    root = math.sqrt(a * a * n - (n + b * b) * (a * a - b * b * discordant))  # squared, it is a quadratic equation; the larger root is it
    difference = (a * math.sqrt(n) + root) / (n + b * b)
    return difference if difference <= discordant else None


def holm(p_values: list[float]) -> list[float]:
    """Adjusted p-values of a family of tests, in their order (Holm 1979): below a level, so is the chance of any false finding."""
    adjusted, largest = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = largest
    return adjusted
