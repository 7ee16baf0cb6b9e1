"""Which weights a layer keeps: masks of the largest scores. How many it keeps is decided in methods/core/allocation.py."""

from __future__ import annotations

import torch
from torch import Tensor


def top_mask(score: Tensor, kept: int) -> Tensor:
    """Mask (bool, score's shape) of exactly the `kept` largest entries, by selection rather than sorting and without a host sync.

    Written out of place: a mask written through a flattened view of a channels_last tensor would be lost.
    """
    flat = score.reshape(-1)
    size = flat.numel()
    if 2 * kept <= size:
        chosen = torch.topk(flat, max(kept, 0), sorted=False).indices
        mask = torch.zeros(size, dtype=torch.bool, device=score.device).index_fill_(0, chosen, True)
    else:
        dropped = torch.topk(flat, max(size - kept, 0), largest=False, sorted=False).indices
        mask = torch.ones(size, dtype=torch.bool, device=score.device).index_fill_(0, dropped, False)
    return mask.view(score.shape)


def global_mask(scores: list[Tensor], kept: int) -> list[Tensor]:
    """Masks of the `kept` largest entries over all layers together (global pruning)."""
    flat = torch.cat([score.reshape(-1) for score in scores])
    mask = top_mask(flat, kept)
    parts = mask.split([score.numel() for score in scores])
    return [part.view(score.shape) for part, score in zip(parts, scores, strict=True)]
