"""Stand-ins: synthetic images of a data set's shape and class count, for machines without the real one.

A class is a smooth random colour pattern; an image is its class's pattern under heavy noise. All arithmetic is exact
and all randomness comes from SHAKE-256 of the data set's name, so a stand-in is the same on every machine, for ever.
"""

import hashlib

import numpy as np
import torch
from torch import Tensor

from methods.split import TensorSplit

GRID = 4  # a pattern has 4 x 4 random colours, blended in between
SMALL, LARGE = (2048, 1024), (512, 256)  # training and test images at 32 pixels, and above


def counts(size: int) -> tuple[int, int]:
    """(training, test) images of a stand-in with images of this size."""
    return SMALL if size <= 32 else LARGE


def split(name: str, part: str, index: np.ndarray, *, classes: int, size: int) -> TensorSplit:
    """The images number `index` of part "train" or "test"; classes take turns."""
    labels = index % classes
    return TensorSplit(torch.from_numpy(labels), lambda: _images(name, part, index, labels, classes, size))


def colours(name: str, classes: int) -> np.ndarray:
    """The random colours of each class's pattern, uint8 (classes, 3, GRID, GRID)."""
    shape = (classes, 3, GRID, GRID)
    return _noise(f"stand-in {name}", int(np.prod(shape))).reshape(shape)


def _images(name: str, part: str, index: np.ndarray, labels: np.ndarray, classes: int, size: int) -> Tensor:
    blend = _blend(size)
    grids = colours(name, classes).astype(np.float64)
    patterns = {int(k): (blend @ grids[k] @ blend.T // (size - 1) ** 2).astype(np.uint16) for k in np.unique(labels)}
    images = np.empty((len(index), 3, size, size), np.uint8)
    for image, number, label in zip(images, index, labels, strict=True):
        noise = _noise(f"stand-in {name} {part} {number}", image.size).reshape(image.shape)
        image[:] = (5 * patterns[int(label)] + 3 * noise.astype(np.uint16)) >> 3
    return torch.from_numpy(images)


def _blend(size: int) -> np.ndarray:
    """Linear interpolation from GRID points to `size` as a matrix of integers, each row summing to size - 1."""
    low, rest = np.divmod(np.arange(size) * (GRID - 1), size - 1)
    matrix = np.zeros((size, GRID + 1))
    matrix[np.arange(size), low] = size - 1 - rest
    matrix[np.arange(size), low + 1] += rest
    return matrix[:, :GRID]  # the last point has nothing to its right, and weight 0 there


def _noise(key: str, length: int) -> np.ndarray:
    return np.frombuffer(hashlib.shake_256(key.encode()).digest(length), np.uint8)
