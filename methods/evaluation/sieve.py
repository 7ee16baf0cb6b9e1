"""Less work for AutoAttack's own APGD objects, with the same answers.

APGD goes on with a point after it has been misclassified, although nothing that follows can make the point robust again. The sieve stands
between the attack and the network: a row that was misclassified once is not computed any more (the attack gets its last logits, which
have no gradient), and when no row is left the run ends. Points do not see each other, and all random draws precede the first step, so
that the rows that are left take exactly the steps that they would have taken.
"""

from __future__ import annotations

import torch
from pyautoattack.autopgd_base import APGDAttack
from torch import Tensor

from methods.evaluation.attacked_net import View


class AllBroken(Exception):
    """Every row of the run has been misclassified."""


class Sieve:
    """The network for one APGD run on (x, y): computes rows until they are misclassified, and keeps the image that did it."""

    def __init__(self, net: View, x: Tensor, y: Tensor):
        self.net, self.y = net, y
        self.alive = torch.ones(len(x), dtype=torch.bool, device=x.device)
        self.adv = x.clone()
        self.last = torch.empty(0, device=x.device)

    def __call__(self, x: Tensor) -> Tensor:
        if self.alive.all():
            logits = self.net(x)
        else:
            rows = self.alive.nonzero().squeeze(1)
            logits = self.last.clone()
            logits[rows] = self.net(x[rows])
        self.last = logits.detach()
        broken = self.net.confirmed(x.detach(), self.y, self.alive & (self.last.max(1)[1] != self.y))
        self.adv[broken] = x.detach()[broken]
        self.alive &= ~broken
        if not self.alive.any():
            raise AllBroken
        return logits


def sieve_apgd(attack: APGDAttack) -> None:
    """Put a sieve in front of the network in each run of this attack object (Linf and L2: L1 changes its radius within a run)."""
    library_run = attack.attack_single_run

    def attack_single_run(x: Tensor, y: Tensor, x_init: Tensor | None = None) -> tuple[Tensor, Tensor, None, Tensor]:
        net, sieve = attack.model, Sieve(attack.model, x, y)
        attack.model = sieve
        try:
            library_run(x, y, x_init)
        except AllBroken:
            pass
        finally:
            attack.model = net
        # `perturb` reads "which rows are still right" and "the images of the others".
        return sieve.adv, sieve.alive, None, sieve.adv

    attack.attack_single_run = attack_single_run
