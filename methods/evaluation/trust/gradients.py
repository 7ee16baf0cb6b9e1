"""Images without a gradient: of the cross-entropy, which saturates, and of the margin, which does not."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from methods.evaluation.attacked_net import View


def without_gradient(view: View, x: Tensor, y: Tensor) -> tuple[int, int]:
    """How many images have no gradient of the cross-entropy, and how many none of the margin: there the network itself has none."""

    def margin(logits: Tensor) -> Tensor:
        others = logits.masked_fill(F.one_hot(y, logits.shape[1]).bool(), -torch.inf)
        return others.amax(1) - logits.gather(1, y[:, None])[:, 0]

    return _zeros(view, x, lambda logits: F.cross_entropy(logits, y, reduction="none")), _zeros(view, x, margin)


def _zeros(view: View, x: Tensor, loss: Callable[[Tensor], Tensor]) -> int:
    image = x.clone().requires_grad_()
    with torch.enable_grad():
        total = loss(view(image)).sum()
    (grad,) = torch.autograd.grad(total, image, allow_unused=True) if total.requires_grad else (None,)
    return len(x) if grad is None else int((grad.flatten(1).abs().amax(1) == 0).sum())
