"""The few statistics a table needs."""

import math
from collections.abc import Sequence

Z95 = 1.959963984540054


def mean(values: Sequence[float]) -> float:
    """Arithmetic mean."""
    return math.fsum(values) / len(values)


def sd(values: Sequence[float]) -> float | None:
    """Standard deviation of a sample (ddof = 1); one value has none."""
    if len(values) < 2:
        return None
    centre = mean(values)
    return math.sqrt(math.fsum((value - centre) ** 2 for value in values) / (len(values) - 1))


def wilson(successes: float, n: float, z: float = Z95) -> tuple[float, float]:
    """Wilson's score interval of a proportion: stays inside [0, 1] and is right at 0 of n, where accuracies of weak models lie."""
    if not 0 <= successes <= n or n == 0:
        raise ValueError(f"{successes} of {n} is not a proportion")
    share, spread = successes / n, z * z / n
    centre = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * math.sqrt(share * (1 - share) / n + spread / (4 * n))
    # At 0 of n and n of n the two parts cancel, but for rounding.
    return 0.0 if successes == 0 else max(0.0, centre - half), 1.0 if successes == n else min(1.0, centre + half)


def prediction(values: Sequence[float], level: float = 0.95) -> tuple[float, float] | None:
    """Interval in which one more value of the same normal sample is expected (Student's t); one value gives none."""
    spread = sd(values)
    if spread is None:
        return None
    from scipy.special import stdtrit  # slow to import, and rarely needed

    n = len(values)
    half = float(stdtrit(n - 1, (1 + level) / 2)) * spread * math.sqrt(1 + 1 / n)
    return mean(values) - half, mean(values) + half


def newcombe(first: tuple[int, int], second: tuple[int, int], z: float = Z95) -> tuple[float, float]:
    """Interval of the second proportion minus the first, each as (successes, n), from their Wilson intervals (Newcombe 1998, method 10)."""
    a, b = first[0] / first[1], second[0] / second[1]
    (low_a, high_a), (low_b, high_b) = wilson(*first, z), wilson(*second, z)
    return b - a - math.hypot(b - low_b, high_a - a), b - a + math.hypot(high_b - b, a - low_a)
