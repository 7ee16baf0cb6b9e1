"""Stand-ins: synthetic images of a data set's shape and class count, for machines without the real one.

A class is a smooth random colour pattern; an image is its class's pattern under heavy noise. All arithmetic is exact
and all randomness comes from SHAKE-256 of the data set's name, so a stand-in is the same on every machine, for ever.
"""

import hashlib

import numpy as np
import torch

from methods.data.hashing import sha256
from methods.data.size import shrunk
from methods.data.split import Pool, TensorSplit

GRID = 4  # a pattern has 4 x 4 random colours, blended in between
SMALL, LARGE = (2048, 1024), (512, 256)  # training and test images at 32 pixels, and above


def pool(name: str, *, title: str, classes: int, image: int, side: int) -> Pool:
    """The stand-in for the data set `name`, whose images have the side `image`, at `side`: small ones shrunk as real ones are, large ones
    made at it. An image is made when its split is first looked at, and only then."""
    small = image <= 32
    count, tests = SMALL if small else LARGE
    shape = (classes, 3, GRID, GRID)
    colours = _noise(f"stand-in {name}", int(np.prod(shape))).reshape(shape)

    def images(part: str, index: np.ndarray) -> np.ndarray:
        return _images(f"{name} {part}", index, index % classes, colours, image if small else side)

    def split(part: str, index: np.ndarray) -> TensorSplit:
        return TensorSplit(torch.from_numpy(index % classes), lambda: shrunk(torch.from_numpy(images(part, index)), side))

    return Pool(
        count=count,
        pick=lambda index: split("train", index),
        test=split("test", np.arange(tests)),
        label=f"stand-in for {title}: synthetic class patterns, not photographs",
        origin="synthetic",
        sha256={"colours": sha256(colours), "first_test_image": sha256(images("test", np.arange(1)))},
    )


def _images(key: str, numbers: np.ndarray, labels: np.ndarray, colours: np.ndarray, size: int) -> np.ndarray:
    blend = _blend(size)
    # Products and sums of small whole numbers, so floating point is exact.
    patterns = {k: (blend @ colours[k] @ blend.T // (size - 1) ** 2).astype(np.uint16) for k in np.unique(labels)}
    images = np.empty((len(numbers), 3, size, size), np.uint8)
    for image, number, label in zip(images, numbers, labels, strict=True):
        noise = _noise(f"stand-in {key} {number}", image.size).reshape(image.shape)
        image[:] = (5 * patterns[label] + 3 * noise.astype(np.uint16)) >> 3
    return images


def _blend(size: int) -> np.ndarray:
    """Linear interpolation from GRID points to `size` as a matrix of integers, each row summing to size - 1."""
    low, rest = np.divmod(np.arange(size) * (GRID - 1), size - 1)
    matrix = np.zeros((size, GRID + 1))
    matrix[np.arange(size), low] = size - 1 - rest
    matrix[np.arange(size), low + 1] += rest
    return matrix[:, :GRID]  # the last point has nothing to its right, and weight 0 there


def _noise(key: str, length: int) -> np.ndarray:
    return np.frombuffer(hashlib.shake_256(key.encode()).digest(length), np.uint8)
