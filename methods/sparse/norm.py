"""Batch norm as a scale and a shift per channel, forward and backward, from sums that the kernels have taken.

Forward: y = scale * z + shift. Backward in train mode, with n values per channel and normalised values h = (z - mean) / deviation,

    dz = scale * (g - mean(g) - h * mean(g * h)) = scale * g + other_scale * z + shift,

so that both are a Source (source.py). Sums are double precision; what a layer multiplies by is single.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from methods.sparse.jit import kernel
from methods.sparse.lanes import LANES


@kernel
def add_up(sums, slots, channels, images):
    """Totals [channels, 3] of sums per slot and lane, of real images only, in a fixed order."""
    totals = np.zeros((channels, 3))
    for slot in range(len(sums) // (channels * 3 * LANES)):
        lanes = min(LANES, images - slot // slots * LANES)
        for c in range(channels):
            for kind in range(3):
                at = ((slot * channels + c) * 3 + kind) * LANES
                total = 0.0
                for lane in range(lanes):
                    total += sums[at + lane]
                totals[c, kind] += total
    return totals


@dataclass(frozen=True)
class Factors:
    """What a Source multiplies and adds, per channel; in single precision for the kernels."""

    scale: np.ndarray
    shift: np.ndarray
    other_scale: np.ndarray | None = None

    @classmethod
    def rounded(cls, scale: np.ndarray, shift: np.ndarray, other_scale: np.ndarray | None = None) -> Factors:
        return cls(scale.astype(np.float32), shift.astype(np.float32), None if other_scale is None else other_scale.astype(np.float32))


def plain(channels: int) -> Factors:
    """Values as they are."""
    return Factors.rounded(np.ones(channels), np.zeros(channels))


class Normed:
    """One batch norm in one forward pass (none: the values as they are), with the bias of the convolution before it, if any."""

    def __init__(self, norm: nn.BatchNorm2d | None, channels: int, bias: torch.Tensor | None = None):
        self.norm, self.batch = norm, norm is not None and norm.training
        self.mean, self.deviation = np.zeros(channels), np.ones(channels)
        self.gain, self.offset = np.ones(channels), np.zeros(channels)
        self.bias = _double(bias) if bias is not None else np.zeros(channels)
        if norm is not None and norm.affine:
            self.gain, self.offset = _double(norm.weight), _double(norm.bias)
        if norm is not None and not self.batch:
            self.mean, self.deviation = _double(norm.running_mean) - self.bias, np.sqrt(_double(norm.running_var) + norm.eps)
        self.count = 0

    def learn(self, totals: np.ndarray, count: int) -> None:
        """Take the batch's statistics from the sums of z and z * z over `count` values, and move the running ones as torch does."""
        norm, self.count = self.norm, count
        if count < 2:
            raise ValueError(f"Expected more than 1 value per channel when training, got {count}")  # torch's words
        self.mean = totals[:, 0] / count
        variance = np.maximum(totals[:, 1] / count - self.mean**2, 0)
        self.deviation = np.sqrt(variance + norm.eps)
        norm.num_batches_tracked.numpy()[...] += 1
        momentum = 1 / int(norm.num_batches_tracked) if norm.momentum is None else norm.momentum
        fresh = ((norm.running_mean, self.mean + self.bias), (norm.running_var, variance * (count / (count - 1))))
        for running, value in fresh:
            statistic = running.numpy()  # its own memory
            statistic[:] = (1 - momentum) * statistic.astype(np.float64) + momentum * value

    def forward(self) -> tuple[np.ndarray, np.ndarray]:
        """Scale and shift, in double precision."""
        scale = self.gain / self.deviation
        return scale, self.bias if self.norm is None else self.offset - scale * self.mean

    def backward(self, totals: np.ndarray, kind: int = 1) -> Factors:
        """From the sums of g and (column `kind`) of g * z."""
        scale = self.gain / self.deviation
        if not self.batch:
            return Factors.rounded(scale, np.zeros(len(scale)))
        slope = -scale * self.gain_gradient(totals, kind) / (self.deviation * self.count)
        return Factors.rounded(scale, -scale * totals[:, 0] / self.count - slope * self.mean, slope)

    def gain_gradient(self, totals: np.ndarray, kind: int = 1) -> np.ndarray:
        """Sum of g * h."""
        return (totals[:, kind] - self.mean * totals[:, 0]) / self.deviation

    def bias_gradient(self, totals: np.ndarray) -> np.ndarray:
        """Of the bias before the norm; batch statistics take it out again."""
        return np.zeros(len(self.gain)) if self.batch else self.gain / self.deviation * totals[:, 0]


def _double(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().numpy().astype(np.float64)
