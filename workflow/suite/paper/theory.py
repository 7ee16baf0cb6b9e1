"""The paper's closed forms: FLOPs of a pruned block, and what random pruning would look like.

Each formula is given as printed where it re-derives; where the print is wrong the correction is what stands here, and says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import e, exp, lgamma, log, pi, sqrt


@dataclass(frozen=True, kw_only=True)
class Block:
    """A convolution-batch norm-ReLU block: kernel size c, map size s, channels in and out, pruned fraction."""

    kernel: int
    size: int
    channels_in: int
    channels_out: int
    sparsity: float

    @property
    def _kept(self) -> float:
        """Kept multiply-adds of the convolution."""
        return (1 - self.sparsity) * self.kernel**2 * self.size**2 * self.channels_in * self.channels_out

    @property
    def _map(self) -> int:
        return self.size**2 * self.channels_out

    def forward(self, *, binary: bool, training: bool) -> float:
        """FLOPs of the forward pass: a binary convolution only adds; batch norm and ReLU cost 11 per output, 4 in evaluation."""
        return (1 if binary else 2) * self._kept + (11 if training else 4) * self._map

    def backward(self, *, binary: bool) -> float:
        """FLOPs of the backward pass, as the paper's table has it: with the score gradient scaled by the kept fraction.

        The text beside the table calls that overhead independent of the pruning rate; then the ratio would be 0.993, not 0.7065.
        """
        weights = 0 if binary else self.kernel**2 * self.channels_in * self.channels_out
        return (3 if binary else 4) * self._kept + 4 * self._map + weights

    def ratios(self) -> dict[str, float]:
        """Binary over full precision."""
        return {
            "forward, training": self.forward(binary=True, training=True) / self.forward(binary=False, training=True),
            "forward, evaluation": self.forward(binary=True, training=False) / self.forward(binary=False, training=False),
            "backward, training": self.backward(binary=True) / self.backward(binary=False),
        }


def logit_factor(neurons: int, sparsity: float) -> float:
    """By how much binary weights scale the logits against Signed Kaiming Constant: sqrt(l (1 - r) / 2)."""
    return sqrt(neurons * (1 - sparsity) / 2)


def normalised_gradient_error(softmax_of: str, *, step: float = 1e-5) -> float:
    """The largest distance, in a small case, between finite differences and the gradient of the cross-entropy below a batch norm with
    fixed statistics, when its softmax is that of the "label", as printed, or that of the "logit" it is taken for, as it must be."""
    logits, mean, deviation = (1.0, -0.5, 2.0), (0.3, -0.2, 0.5), (0.5, 1.5, 0.8)

    def chances(values: Sequence[float]) -> list[float]:
        powers = [exp((o - b) / v) for o, b, v in zip(values, mean, deviation, strict=True)]
        return [power / sum(powers) for power in powers]

    errors = []
    for label, j in product(range(3), repeat=2):
        up, down = ([o + sign * step * (i == j) for i, o in enumerate(logits)] for sign in (1, -1))
        slope = (log(chances(down)[label]) - log(chances(up)[label])) / (2 * step)
        formula = (chances(logits)[label if softmax_of == "label" else j] - (j == label)) / deviation[j]
        errors.append(abs(formula - slope))
    return max(errors)


def _choose(n: int, k: int) -> float:
    """Logarithm of the binomial coefficient."""
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


def kernel_share(k: int, *, weights: int, kept: int, area: int = 9) -> float:
    """Exact probability that a kernel keeps k of its weights when `kept` of a layer's `weights` are kept at random."""
    if not 0 <= k <= min(area, kept):
        return 0.0
    return exp(_choose(area, k) + _choose(weights - area, kept - k) - _choose(weights, kept))


def kernel_share_estimate(k: int, *, weights: int, sparsity: float) -> float:
    """The paper's estimate of the same (Stirling, independent draws); for k = 0 its exponential, with the lost minus sign restored."""
    if k == 0:
        return exp(-9 * (1 - sparsity))
    kept = (1 - sparsity) * weights
    return sqrt(kept / (2 * pi * k * (kept - k))) * (9 * e * (1 - sparsity) / k) ** k


def empty_channel_share(*, channel_weights: int, weights: int, kept: int) -> float:
    """Exact probability that random pruning empties a channel."""
    return exp(_choose(weights - channel_weights, kept) - _choose(weights, kept))
