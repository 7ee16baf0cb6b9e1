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


def wilson(successes: int, n: int, z: float = Z95) -> tuple[float, float]:
    """Wilson's score interval of a proportion: stays inside [0, 1] and is right at 0 of n, where accuracies of weak models lie."""
    if not 0 <= successes <= n or n == 0:
        raise ValueError(f"{successes} of {n} is not a proportion")
    share, spread = successes / n, z * z / n
    centre = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * math.sqrt(share * (1 - share) / n + spread / (4 * n))
    return max(0.0, centre - half), min(1.0, centre + half)
