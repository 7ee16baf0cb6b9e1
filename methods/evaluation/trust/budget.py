"""What the panel may cost: a share of the passes of the evaluation, dealt to its checks."""

from __future__ import annotations

from dataclasses import dataclass

from methods.evaluation.observer import Observer

# Below the quarter that is promised: the first block says how dear all of them are, and others may be cheaper.
SHARE = 0.2
SHARES = {
    "randomness": 0.05,
    "gradients": 0.05,
    "temperature": 0.2,
    "iterations": 0.25,
    "large_radius": 0.1,
    "square": 0.1,
    "binarisation": 0.25,
}
IMAGES = (32, 16, 8, 4)
LEAST_ITERATIONS = 5


@dataclass(frozen=True)
class Afforded:
    """How many images a check looks at, for how many iterations."""

    images: int
    iterations: int


def allowed(passes: int, examples: int, total: int) -> int:
    """Passes for the panel of an evaluation of `total` examples whose first block of so many examples took so many passes."""
    return int(SHARE * passes * total / examples)


def afford(budget: float, *, available: int, fixed: int, per_iteration: int, most: int, least: int = LEAST_ITERATIONS) -> Afforded | None:
    """The most images, then iterations, that a check can have; None where even a few are too dear."""
    for images in dict.fromkeys(min(count, available) for count in IMAGES):
        iterations = int((budget / images - fixed) // per_iteration)
        if iterations >= min(least, most):
            return Afforded(images, min(iterations, most))
    return None


class Counter(Observer):
    """Counts the passes of a check."""

    count = 0

    def passes(self, count: int) -> None:
        self.count += count
