"""Kept weights of a convolution as lists: for each output channel, how far from a position its inputs are, and their factors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from methods.latency.plane import Plane


class Taps(NamedTuple):
    """Output channel c has the entries start[c] to start[c + 1]."""

    start: np.ndarray
    offset: np.ndarray
    factor: np.ndarray


def taps(weight: np.ndarray, plane: Plane, stride: int) -> Taps:
    """Of a weight [out, in, kernel, kernel] that reads planes like this one.

    A stride of 2 reads the four planes that a channel was split into, by parity of row and column (kernels.py: split), at stride 1.
    """
    channel_out, channel_in, row, column = np.nonzero(weight)
    pad = (weight.shape[2] - 1) // 2
    down, along, which = row - pad, column - pad, channel_in
    if stride == 2:
        which = 4 * channel_in + 2 * (down % 2) + along % 2
        down, along = down // 2, along // 2
    offset = which * plane.floats + down * plane.pitch + along
    start = np.searchsorted(channel_out, np.arange(len(weight) + 1))
    factor = weight[channel_out, channel_in, row, column]
    return Taps(start.astype(np.int32), offset.astype(np.int32), factor.astype(np.float32))


def reach(kernel: int, stride: int) -> int:
    """How far beyond the edges of the planes that it reads a convolution reaches."""
    pad = (kernel - 1) // 2
    return -(-pad // stride)
