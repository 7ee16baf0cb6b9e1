"""Which test images a network was right on: the per-image outcomes that every merged evaluation stores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from methods.core.eval_result import CLEAN, ROBUST, decode


@dataclass(frozen=True, kw_only=True, eq=False)
class Outcomes:
    """`right[s, i]` is whether the network of the s-th seed was right on the i-th image; equal `images` are the same images in the same
    order."""

    images: tuple[str, int]
    right: np.ndarray

    @property
    def seeds(self) -> int:
        return len(self.right)

    @property
    def n(self) -> int:
        return self.right.shape[1]

    @property
    def by_image(self) -> np.ndarray:
        """The share of seeds that were right on each image."""
        return self.right.mean(0)

    @property
    def by_seed(self) -> np.ndarray:
        """The accuracy of each seed."""
        return self.right.mean(1)

    @property
    def effective(self) -> float:
        """How many images, each answered by one network, would say as much of the mean: the effective sample size of clusters (Kish 1965).

        Seeds answer the same images, and what is hard for one is hard for the others: where they all agree there are no more than the
        images, where each answers for itself there are as many as answers.
        """
        mean, spread = float(self.right.mean()), float(self.by_image.var())
        alone = mean * (1 - mean)  # the variance of one answer, which is that of an image's mean where all seeds agree
        if alone == 0:
            return self.n
        return self.n * (self.seeds if spread == 0 else min(max(alone / spread, 1.0), self.seeds))


def of_results(results: Sequence[Mapping[str, Any]], metric: str, label: str) -> Outcomes | None:
    """The outcomes behind merged evaluations of one cell, one per seed, on the data called `label`; `None` where one of them stores none
    (it was made by hand, or read from a frame) or where they are not of the same images."""
    if not results or any("broken_by" not in result for result in results) or len({result["n"] for result in results}) > 1:
        return None
    right = np.array([_right(result["broken_by"], metric) for result in results])
    return Outcomes(images=(label, right.shape[1]), right=right)


def _right(broken_by: Mapping[str, Any], metric: str) -> np.ndarray:
    by = np.array(decode(broken_by))
    return by != CLEAN if metric == "clean_acc" else by == ROBUST
