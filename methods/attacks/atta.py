"""FGSM with transferred perturbations (ATTA), the fast attacker of the paper.

Each training image owns a perturbation canvas, four pixels larger on each side than the image, that lives as long as the run (two pixels
where images have 16x16: `methods.data.size.margin`). A step cuts a random window from the padded image and the same window from its canvas,
takes one signed gradient step, and writes the window back; flips and offsets are undone by writing through the indices that were read.
Large images keep their canvas as 8x8 block means: 29x29 for a 224x224 image, 10 092 bytes in place of 645 888; 1.25 GB for the 124 156
training images of ImageNet-100.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from methods.attacks.pgd import loss_and_sign
from methods.data.part import Part, drawn, part_of
from methods.data.size import margin

FILL = 0.5  # grey padding of the image, where the loader's own augmentation pads with black
POOL = 8
LARGE = 160  # images taller than this keep a pooled canvas


class Canvas:
    """The perturbations of all training images, gathered and scattered by sample index."""

    def __init__(self, samples: int, shape: tuple[int, int, int], eps: float, *, generator: torch.Generator):
        self.samples = samples
        self.eps = eps
        self.margin = margin(shape[1])  # pixels on each side
        self.height, self.width = shape[1] + 2 * self.margin, shape[2] + 2 * self.margin
        self.pooled = shape[1] > LARGE
        self.visited = 0  # images, a return counted again
        self.complete = False  # whether all are known to have been visited: a pooled canvas is random, at full resolution, until then
        size = (samples, shape[0], self.height // POOL, self.width // POOL) if self.pooled else (samples, shape[0], self.height, self.width)
        self.store = torch.zeros(size, device=generator.device)
        if not self.pooled:
            self.store.uniform_(-eps, eps, generator=generator)
        self.seen = torch.zeros(samples, dtype=torch.bool, device=generator.device)

    def read(self, index: Tensor, generator: torch.Generator) -> Tensor:
        """Full-resolution canvases of these samples (a copy)."""
        if not self.pooled:
            return self.store[index]
        full = self.store[index].repeat_interleave(POOL, 2).repeat_interleave(POOL, 3)
        if not self.complete:
            shape, (low, high) = full.shape[1:], (-self.eps, self.eps)
            fresh = drawn(generator, len(full), lambda n: full.new_empty((n, *shape)).uniform_(low, high, generator=generator))
            full = torch.where(self.seen[index].view(-1, 1, 1, 1), full, fresh)
        return full

    def write(self, index: Tensor, full: Tensor, part: Part | None = None) -> None:
        """Keep canvases; every process those of the whole batch, since its images will be another's in the next epoch."""
        kept = F.avg_pool2d(full, POOL) if self.pooled else full
        if part is not None:
            index, kept = part.whole(index), part.whole(kept)
        self.store[index] = kept
        self.seen[index] = True
        self.visited += len(index)
        if self.pooled and not self.complete and self.visited % self.samples < len(index):
            self.complete = bool(self.seen.all())  # waits for the device, once per pass over the images

    def state(self) -> dict[str, Any]:
        return {"store": self.store, "seen": self.seen, "visited": self.visited, "complete": self.complete}

    def load(self, state: Mapping[str, Any]) -> None:
        self.store.copy_(state["store"])
        self.seen.copy_(state["seen"])
        self.visited, self.complete = state["visited"], state["complete"]


def windows(h: Tensor, w: Tensor, flip: Tensor, height: int, width: int) -> tuple[Tensor, Tensor]:
    """Row and column indices (B, height), (B, width) of each sample's window; a mirrored window reads its columns backwards."""
    rows = h[:, None] + torch.arange(height, device=h.device)
    columns = torch.arange(width, device=h.device).expand(len(w), -1)
    columns = torch.where(flip[:, None].bool(), columns.flip(1), columns) + w[:, None]
    return rows, columns


def atta_step(
    net: nn.Module,
    x: Tensor,
    y: Tensor,
    canvas: Tensor,
    *,
    rows: Tensor,
    columns: Tensor,
    eps: float,
    alpha: float,
    part: Part | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The augmented clean batch, its adversarial batch, and the canvases with the new perturbations written into their windows."""
    batch = torch.arange(len(x), device=x.device).view(-1, 1, 1, 1)
    channel = torch.arange(x.shape[1], device=x.device).view(1, -1, 1, 1)
    window = (batch, channel, rows[:, None, :, None], columns[:, None, None, :])
    layout = torch.channels_last if x.is_contiguous(memory_format=torch.channels_last) else torch.contiguous_format
    pad = (canvas.shape[2] - x.shape[2]) // 2
    x = F.pad(x, (pad,) * 4, value=FILL)[window].contiguous(memory_format=layout)
    delta = canvas[window].contiguous(memory_format=layout)
    _, sign = loss_and_sign(net, x + delta, y, part)  # not clipped to [0, 1] before the gradient is taken
    delta = (delta + alpha * sign).clamp_(-eps, eps)
    delta = (x + delta).clamp_(0, 1) - x
    canvas = canvas.clone()
    canvas[window] = delta
    return x, x + delta, canvas


class Atta:
    """The attacker: draws windows, steps, and keeps the canvases."""

    def __init__(self, canvas: Canvas, *, eps: float, alpha: float):
        self.canvas, self.eps, self.alpha = canvas, eps, alpha

    def draw(self, count: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        """Vertical and horizontal offsets and mirror bits of `count` windows."""
        offsets = 2 * self.canvas.margin  # of 0..8 the 8 is never drawn, as in the official code

        def draw(high: int) -> Tensor:
            return drawn(generator, count, lambda n: torch.randint(high, (n,), generator=generator, device=generator.device))

        return draw(offsets), draw(offsets), draw(2)

    def __call__(self, net: nn.Module, x: Tensor, y: Tensor, index: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """(augmented clean batch, adversarial batch) of un-augmented images x."""
        part = part_of(generator)
        rows, columns = windows(*self.draw(len(x), generator), *x.shape[2:])
        before = self.canvas.read(index, generator)
        x, adv, after = atta_step(net, x, y, before, rows=rows, columns=columns, eps=self.eps, alpha=self.alpha, part=part)
        self.canvas.write(index, after, part)
        return x, adv
