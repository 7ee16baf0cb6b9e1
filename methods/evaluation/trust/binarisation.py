"""The binarisation test (Zimmermann et al., NeurIPS 2022): can the attack find an adversarial image that was planted?

For each image the last layer is replaced by a linear discriminator on the features before it: points well inside the ball are class 0, one
corner of the ball is class 1, and the threshold lies just below that corner's score. So an adversarial image exists in the ball by
construction, next to nothing else is one, and an attack whose gradients are worth anything finds it.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from pyautoattack.autopgd_base import APGDAttack
from torch import Tensor, nn

INNER = 0.95  # inner points fill this share of the radius
CLOSENESS = 0.999  # the threshold lies so far on the way from the highest inner score to the planted one

Features = Callable[[Tensor], Tensor]


class Planted(nn.Module):
    """Row i is judged by discriminator i: logits (0, score - threshold), of order one."""

    def __init__(self, features: Features, weight: Tensor, threshold: Tensor, scale: Tensor):
        super().__init__()
        self.features, self.weight, self.threshold, self.scale = features, weight, threshold, scale

    def forward(self, x: Tensor) -> Tensor:
        score = ((self.features(x) * self.weight).sum(1) - self.threshold) / self.scale
        return torch.stack([torch.zeros_like(score), score], 1)


def plant(features: Features, x: Tensor, *, eps: float, points: int, generator: torch.Generator) -> tuple[Planted, Tensor, Tensor]:
    """The discriminators of all images, the planted corners, and which of them are separated from their inner points."""
    corners = (x + eps * _signs(x, generator)).clamp(0, 1)
    weights, thresholds, scales, separated = [], [], [], []
    for image, corner in zip(x, corners, strict=True):
        noise = 2 * torch.rand((points, *image.shape), generator=generator).to(x.device) - 1
        inner = features(torch.cat([image[None], (image + INNER * eps * noise).clamp(0, 1)])).double()
        target, centre = features(corner[None]).double()[0], inner.mean(0)
        weight = _direction(inner - centre, target - centre)
        scores, goal = inner @ weight, target @ weight
        top = scores.max()
        separated.append(bool(goal > top))
        weights.append(weight)
        thresholds.append(top + CLOSENESS * (goal - top))
        scales.append((goal - scores.min()).clamp_min(1e-12))
    stacked = [torch.stack(values).float() for values in (weights, thresholds, scales)]
    return Planted(features, *stacked), corners, torch.tensor(separated, device=x.device)


def _direction(spread: Tensor, offset: Tensor) -> Tensor:
    """Fisher's discriminant with a little ridge: where the offset is large compared with how inner points scatter."""
    covariance = spread.T @ spread / len(spread)
    ridge = 1e-6 * covariance.diagonal().mean().clamp_min(1e-30) * torch.eye(len(offset), dtype=offset.dtype, device=offset.device)
    return torch.linalg.solve(covariance + ridge, offset)


def find(planted: Planted, x: Tensor, *, eps: float, iterations: int, seed: int) -> Tensor:
    """Which of the planted rows APGD on the cross-entropy breaks; rows stay together, since each has its own discriminator."""
    y = torch.zeros(len(x), dtype=torch.long, device=x.device)
    attack = APGDAttack(planted, n_iter=iterations, norm="Linf", n_restarts=1, eps=eps, seed=seed, device=x.device, logger=_Silent())
    attack.init_hyperparam(x)
    torch.manual_seed(seed)
    adversarial = attack.attack_single_run(x, y)[3]
    with torch.no_grad():
        return planted(adversarial).max(1)[1] != y


def random_search(planted: Planted, x: Tensor, *, eps: float, tries: int, generator: torch.Generator) -> Tensor:
    """Which of the planted rows random corners break: where that succeeds the test says nothing."""
    hit = torch.zeros(len(x), dtype=torch.bool, device=x.device)
    with torch.no_grad():
        for _ in range(tries):
            hit |= planted((x + eps * _signs(x, generator)).clamp(0, 1)).max(1)[1] == 1
    return hit


def _signs(x: Tensor, generator: torch.Generator) -> Tensor:
    return (2 * torch.randint(0, 2, x.shape, generator=generator) - 1).to(x)


class _Silent:
    def warning(self, message: str) -> None:
        """Zero gradients are a check of their own."""
