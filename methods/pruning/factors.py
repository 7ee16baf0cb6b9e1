"""A convolution weight as a product of two factors plus a sparse term (ATMC), at full rank: only sparsity compresses it."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Factorised(nn.Module):
    """Maker of (B + I) A + C, or of B (A + I) + C where the kernel, seen as an out x (in * kh * kw) matrix, is not wider than high.

    The constant I makes it start as the plain layer: one factor holds the dense weight, the other and C are zero. Both forms are
    B A + C plus the factor that meets I, so I itself is never stored.
    """

    def __init__(self, dense: Tensor):
        super().__init__()
        self.shape = dense.shape
        out, inputs = dense.shape[0], dense[0].numel()
        rank = min(out, inputs)
        self.tall = rank == inputs
        self.a = nn.Parameter(dense.new_zeros(rank, inputs))
        self.b = nn.Parameter(dense.new_zeros(out, rank))
        self.c = nn.Parameter(dense.new_zeros(out, inputs))
        self.start(dense)

    @torch.no_grad()
    def start(self, dense: Tensor) -> None:
        """Become exactly this dense weight."""
        self.c.zero_()
        (self.a if self.tall else self.b).zero_()
        (self.b if self.tall else self.a).copy_(dense.reshape(self.c.shape))

    def forward(self) -> Tensor:
        return torch.addmm(self.c + (self.b if self.tall else self.a), self.b, self.a).view(self.shape)
