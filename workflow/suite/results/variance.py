"""How much of the spread of a number comes from the trainings and how much from the test images."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, kw_only=True)
class Split:
    """Components of the variance of one outcome (right or wrong), and the standard deviations they give a mean over seeds and images.

    `seed` is between trainings, `image` between images (some are harder for all), `rest` is what neither explains. An estimate below zero
    is shown as zero.
    """

    seeds: int
    images: int
    seed: float
    image: float
    rest: float

    @property
    def from_seeds(self) -> float:
        """Standard deviation of the mean if the trainings were made again and the images stayed."""
        return float(np.sqrt(self.seed / self.seeds + self.rest / (self.seeds * self.images)))

    @property
    def from_images(self) -> float:
        """Standard deviation of the mean if other images of the same kind were taken and the trainings stayed."""
        return float(np.sqrt(self.image / self.images + self.rest / (self.seeds * self.images)))


def split(right: np.ndarray) -> Split | None:
    """Two-way random effects (seeds by images), by the method of moments; `None` with fewer than two seeds or images."""
    seeds, images = right.shape
    if seeds < 2 or images < 2:
        return None
    x = right.astype(float)
    mean, by_seed, by_image = x.mean(), x.mean(1), x.mean(0)
    of_seeds = images * ((by_seed - mean) ** 2).sum() / (seeds - 1)
    of_images = seeds * ((by_image - mean) ** 2).sum() / (images - 1)
    rest = ((x - by_seed[:, None] - by_image[None, :] + mean) ** 2).sum() / ((seeds - 1) * (images - 1))
    return Split(
        seeds=seeds,
        images=images,
        seed=max(0.0, float((of_seeds - rest) / images)),
        image=max(0.0, float((of_images - rest) / seeds)),
        rest=float(rest),
    )
