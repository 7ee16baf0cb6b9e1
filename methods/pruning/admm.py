"""Quantisation by ADMM: trained tensors W, their quantised copies Z, and the scaled dual U that ties them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from methods.core.errors import UserError
from methods.pruning.codebook import fit, fittable

MASKS = ("none", "unfitted", "all")
Seeder = Callable[[str, Tensor, Tensor], Tensor]


def update_due(batch: int, batches: int, interval: int) -> bool:
    """Whether a batch (0, 1, ...) of an epoch of so many updates Z: each `interval`-th, never the first.

    An epoch that is too short for the interval updates at its last batch, so that what is deployed is always quantised.
    """
    return batches == 1 or (batch > 0 and batch % min(interval, batches - 1) == 0)


class Admm:
    """Z has at most 2^bits non-zero values per tensor; its number of non-zeros is not constrained (the constraint is on W).

    `penalty` is added to the loss while W is trained; `update` is the step of Z and U. Until the first one Z is W as it was at the
    start. `mask` says where Z may only be non-zero if W is: nowhere ("none", official), in all tensors ("all"), or in those that are too
    sparse to be fitted ("unfitted"): the official code leaves the unquantised W + U there, with all that has gathered in U.
    """

    def __init__(self, tensors: Mapping[str, Tensor], *, bits: int, rho: float, iterations: int, tolerance: float, mask: str):
        if mask not in MASKS:
            raise UserError(f"unknown 'options.quantiser.mask: {mask}'; allowed: {', '.join(MASKS)}")
        if bits < 1:
            raise UserError(f"'options.quantiser.bits: {bits}' must be at least 1: a tensor gets 2^bits values besides zero")
        self.w = dict(tensors)
        self.z = {name: w.detach().clone() for name, w in tensors.items()}
        self.u = {name: torch.zeros_like(w) for name, w in self.z.items()}
        self.fitted = dict.fromkeys(tensors, False)  # whether the last update gave the tensor a codebook
        self.levels, self.rho, self.mask = 2**bits, rho, mask
        self.iterations, self.tolerance = iterations, tolerance

    def distance(self) -> Tensor:
        """||W + U - Z||^2 summed over every entry of every tensor; differentiable in W."""
        return torch.stack([(w + self.u[name] - self.z[name]).square().sum() for name, w in self.w.items()]).sum()

    def penalty(self) -> Tensor:
        """rho / 2 ||W + U - Z||^2."""
        return self.rho / 2 * self.distance()

    @torch.no_grad()
    def update(self, seeder: Seeder) -> None:
        """Z <- W + U rounded to a codebook per tensor; U <- U + W - Z. `seeder(name, W, W + U)` gives the flat positions of the seeds."""
        for name, w in self.w.items():
            moved = w + self.u[name]
            self.fitted[name] = fittable(w, self.levels)
            z = self.rounded(moved, seeder(name, w, moved)) if self.fitted[name] else moved
            if self.mask == "all" or (self.mask == "unfitted" and not self.fitted[name]):
                z = z.masked_fill(w == 0, 0)
            self.z[name].copy_(z)
            self.u[name].copy_(moved - z)

    def rounded(self, values: Tensor, seeds: Tensor) -> Tensor:
        """The tensor rounded to a codebook fitted from its entries at these flat positions."""
        return fit(values, seeds, iterations=self.iterations, tolerance=self.tolerance).values(values)

    @torch.no_grad()
    def report(self) -> dict[str, Any]:
        """What Z is: non-zeros, distinct non-zero values of each tensor, the share of fitted codebooks of one sign, its distance to W."""
        values = {name: z[z != 0].unique() for name, z in self.z.items()}
        fitted = [v for name, v in values.items() if self.fitted[name]]
        apart = sum((w - self.z[name]).square().sum() for name, w in self.w.items())
        return {
            "nonzero_z": sum(int(z.count_nonzero()) for z in self.z.values()),
            "distinct_values_z": [v.numel() for v in values.values()],
            "codebooks": len(fitted),
            "one_signed_codebooks": sum(bool((v > 0).all() or (v < 0).all()) for v in fitted) / max(len(fitted), 1),
            "distance_w_z": float(apart / sum(w.square().sum() for w in self.w.values())),
        }

    def state(self) -> dict[str, Any]:
        return {"z": self.z, "u": self.u, "fitted": self.fitted}

    def load(self, state: Mapping[str, Any]) -> None:
        for ours, saved in ((self.z, state["z"]), (self.u, state["u"])):
            for name, tensor in ours.items():
                tensor.copy_(saved[name])
        self.fitted = dict(state["fitted"])
