"""Random augmentation of whole batches as tensor gathers: no loop over samples, on whatever device the batch is.

The random draws are made on the CPU, so that a seed gives the same crops on every device.
"""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from methods.data.size import margin
from methods.data.transfer import sent

AREA = (0.08, 1.0)  # RandomResizedCrop: share of the area kept ...
RATIO = (3 / 4, 4 / 3)  # ... and aspect ratio, log-uniform; the usual ImageNet values
DEGREES = 15  # of crop_flip_rotate
SHIFT = 0.1  # of shift_flip, as a share of the side


def crop_flip(images: Tensor, generator: torch.Generator) -> Tensor:
    """Zero-pad by 4, crop back to the old size at a random offset (0..8 each way), mirror with probability 1/2.

    The CIFAR augmentation of the paper's code; images of 16x16 pixels are padded by 2.
    """
    count, channels, height, width = images.shape
    pad = margin(height)
    down, right = sent(torch.randint(0, 2 * pad + 1, (2, count), generator=generator), images.device)
    flip = sent(torch.randint(0, 2, (count,), generator=generator).bool(), images.device)
    rows = down[:, None] + torch.arange(height, device=images.device)
    across = torch.arange(width, device=images.device)
    columns = right[:, None] + torch.where(flip[:, None], across.flip(0), across)
    padded = F.pad(images, (pad,) * 4)
    where = rows[:, :, None] * padded.shape[3] + columns[:, None, :]
    where = where.view(count, 1, -1).expand(-1, channels, -1)
    return padded.flatten(2).gather(2, where).view(count, channels, height, width)


def resized_crop_flip(images: Tensor, generator: torch.Generator) -> Tensor:
    """A random box of 8 % to 100 % of the area, resampled to the old size, mirrored with probability 1/2.

    For data that live in memory at their final size. Photographs are cropped from their original size instead
    (`methods.data.imagenet`), which keeps detail.
    """
    count, _, height, width = images.shape
    area, ratio, down, right = torch.rand(4, count, generator=generator)
    flip = torch.randint(0, 2, (count,), generator=generator) * 2 - 1
    area = AREA[0] + area * (AREA[1] - AREA[0])
    ratio = torch.exp(math.log(RATIO[0]) + ratio * (math.log(RATIO[1]) - math.log(RATIO[0])))
    tall = (area / ratio).sqrt().clamp(max=1)  # as shares of the image; images are square
    wide = (area * ratio).sqrt().clamp(max=1)
    # affine_grid speaks of [-1, 1]: a box of share s may be centred anywhere within +-(1 - s).
    matrix = torch.zeros(count, 2, 3)
    matrix[:, 0, 0], matrix[:, 0, 2] = wide * flip, (2 * right - 1) * (1 - wide)
    matrix[:, 1, 1], matrix[:, 1, 2] = tall, (2 * down - 1) * (1 - tall)
    grid = F.affine_grid(sent(matrix, images.device), list(images.shape), align_corners=False)
    sampled = F.grid_sample(images.to(grid.dtype), grid, padding_mode="border", align_corners=False)
    return sampled.round().clamp(0, 255).to(torch.uint8)


def crop_flip_rotate(images: Tensor, generator: torch.Generator) -> Tensor:
    """crop_flip, then a turn about the middle by up to 15 degrees either way; nearest pixels, black corners. FlyingBird's on CIFAR-100."""
    images = crop_flip(images, generator)
    return rotate(images, (2 * torch.rand(len(images), generator=generator) - 1) * DEGREES)


def rotate(images: Tensor, degrees: Tensor) -> Tensor:
    """Each image turned counter-clockwise about its middle."""
    angle = torch.deg2rad(degrees)
    matrix = torch.zeros(len(images), 2, 3)  # from a place in the new image to one in the old
    matrix[:, 0, 0] = matrix[:, 1, 1] = angle.cos()
    matrix[:, 0, 1], matrix[:, 1, 0] = -angle.sin(), angle.sin()
    grid = F.affine_grid(matrix.to(images.device), list(images.shape), align_corners=False)
    return F.grid_sample(images.to(grid.dtype), grid, mode="nearest", padding_mode="zeros", align_corners=False).to(torch.uint8)


def shift_flip(images: Tensor, generator: torch.Generator) -> Tensor:
    """A shift by up to a tenth of the side each way, between pixels too, edges repeated; mirrored with probability 1/2. BCS's on CIFAR."""
    count = len(images)
    down, right = (2 * torch.rand(2, count, generator=generator) - 1) * SHIFT
    flip = torch.randint(0, 2, (count,), generator=generator) * 2 - 1
    matrix = torch.zeros(count, 2, 3)  # affine_grid speaks of [-1, 1]: the side is 2
    matrix[:, 0, 0], matrix[:, 0, 2] = flip, 2 * right
    matrix[:, 1, 1], matrix[:, 1, 2] = 1, 2 * down
    grid = F.affine_grid(matrix.to(images.device), list(images.shape), align_corners=False)
    sampled = F.grid_sample(images.to(grid.dtype), grid, padding_mode="border", align_corners=False)
    return sampled.round().clamp(0, 255).to(torch.uint8)


AUGMENTS = {
    "crop_flip": crop_flip,
    "resized_crop_flip": resized_crop_flip,
    "crop_flip_rotate": crop_flip_rotate,
    "shift_flip": shift_flip,
}
