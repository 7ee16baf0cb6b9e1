"""Smaller images: what a Run with `data.size` sees in place of a data set's own size.

CIFAR images at 16x16 are means of 2x2 pixels, computed from the verified arrays in whole numbers and rounded to the nearest, halves up:
(a + b + c + d + 2) // 4. Photographs are resized and cropped to the wanted side instead (methods/data/imagenet.py), and stand-ins for
them are made at it.
"""

import torch
from torch import Tensor

MARGIN = 4  # pixels of padding around an image before it is cropped, in the paper's code


def shrunk(images: Tensor, side: int) -> Tensor:
    """uint8 images (NCHW) at `side`, by halving as often as it takes."""
    while images.shape[2] > side:
        images = halved(images)
    return images


def halved(images: Tensor) -> Tensor:
    """uint8 images (NCHW) of half the side: rounded means of 2x2 pixels, halves up."""
    rows = images[:, :, ::2].to(torch.int16) + images[:, :, 1::2]
    return ((rows[..., ::2] + rows[..., 1::2] + 2) >> 2).to(torch.uint8)


def margin(side: int) -> int:
    """Padding of a random crop: an eighth of a small image's side (4 pixels at 32, as in the paper's code, 2 at 16), 4 of larger ones.

    The same share, so that an object is moved by as much of the picture, and as much of the picture is padding.
    """
    return min(MARGIN, side // 8)
