"""AutoAttack (Croce & Hein, ICML 2020, arXiv:2003.01690) on one block of examples, through the authors' library.

`library(...)` is the library's object with the settings of an evaluation; `plain_block` is a plain call of it. `attack_block` drives the
same object attack by attack: it knows which attack broke which example, keeps the library's warnings, can go on after any attack, and
spares work (`methods.evaluation.sieve`, `methods.evaluation.attacked_net`). Both give the same answer per example.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from pyautoattack import AutoAttack
from pyautoattack.autopgd_base import APGDAttack, APGDAttack_targeted
from torch import Tensor, nn

from methods.attacks.pgd import pgd
from methods.core.errors import UserError
from methods.core.eval_result import CLEAN, ROBUST
from methods.core.eval_spec import Custom, EvalSpec, Pgd, Standard
from methods.evaluation.attack_warnings import WarningLogger, check_network
from methods.evaluation.attacked_net import AttackedNet, View
from methods.evaluation.observer import Observer
from methods.evaluation.sieve import sieve_apgd

TARGETED = ("apgd-t", "fab-t")
LEAST_CLASSES = {"apgd-t": 4, "apgd-dlr": 3}  # their losses look at that many logits


def library(net: nn.Module, spec: EvalSpec, seed: int, *, device: torch.device | str = "cpu") -> AutoAttack:
    """The library's object for these settings: its standard version, with what a custom evaluation changes."""
    attack = _budget(spec)
    adversary = AutoAttack(net, norm=spec.norm, eps=spec.radius, seed=seed, version="standard", device=device)
    adversary.attacks_to_run = list(attack.attacks)
    # APGD derives its checkpoints from n_iter when it is made: one with another number is a new object.
    common = {"n_iter": attack.apgd_iter, "norm": spec.norm, "eps": spec.radius, "seed": seed, "rho": 0.75, "device": device}
    adversary.apgd = APGDAttack(net, n_restarts=attack.restarts, logger=adversary.logger, **common)
    adversary.apgd_targeted = APGDAttack_targeted(net, n_restarts=1, n_target_classes=attack.targets, logger=adversary.logger, **common)
    adversary.fab.n_iter = attack.fab_iter
    adversary.fab.n_restarts = attack.restarts
    adversary.fab.n_target_classes = attack.targets
    adversary.square.n_queries = attack.square_queries
    return adversary


def _budget(spec: EvalSpec) -> Custom:
    if not isinstance(spec.attack, Custom | Standard):
        raise ValueError(f"{spec.attack} is no version of AutoAttack")
    return spec.attack.budget


def plain_block(net: nn.Module, x: Tensor, y: Tensor, *, spec: EvalSpec, seed: int) -> Tensor:
    """Which examples are robust, by one plain call of the library on the block: the yardstick for `attack_block`."""
    adversary = library(net, spec, seed, device=x.device)
    adversarial, _ = adversary.run_standard_evaluation(x, y, batch_size=len(x))
    with torch.no_grad():
        return net(adversarial).max(1)[1] == y


def attack_block(
    net: AttackedNet,
    x: Tensor,
    y: Tensor,
    *,
    spec: EvalSpec,
    seed: int,
    observer: Observer,
    chunk: int | None = None,
    check: bool = True,
    before: Sequence[str] = (),
    done: Sequence[str] = (),
) -> list[str]:
    """What broke each example: "none", "clean", or the attack.

    `before` and `done` are the answers after the attacks that an interrupted run had finished. Each attack seeds itself, so that going on
    gives what an undisturbed run gives. `check` looks at the network as the library does before its first batch.
    """
    view = View(net, observer, chunk=chunk)
    with torch.no_grad():
        logits = view.dense(x)
        check_labels(y, logits.shape[1])
        check_classes(spec, logits.shape[1])
        broken = list(before) or [ROBUST if right else CLEAN for right in (logits.max(1)[1] == y).tolist()]
        names = [name for name in spec.attack.names if name not in done]
        if names and check and not done and not isinstance(spec.attack, Pgd):
            check_network(view, x, y, observer)
        for name in names:
            rows = torch.tensor([i for i, b in enumerate(broken) if b == ROBUST], dtype=torch.long, device=x.device)
            observer.begin(name, len(rows))
            if len(rows):
                adversarial = perturb(view.knowing(x[rows], logits[rows]), x[rows], y[rows], name=name, spec=spec, seed=seed)
                check_ball(adversarial, x[rows], spec, name)
                fooled = view.dense(adversarial).max(1)[1] != y[rows]
                for i in rows[fooled].tolist():
                    broken[i] = name
            observer.end(name, broken)
    return broken


def perturb(view: View, x: Tensor, y: Tensor, *, name: str, spec: EvalSpec, seed: int) -> Tensor:
    """The images that one attack makes of x, seeded and set as the library's `run_standard_evaluation` does it."""
    if isinstance(spec.attack, Pgd):
        return _pgd(view, x, y, spec.attack, spec.radius, seed)
    adversary = library(view, spec, seed, device=x.device)
    if name in ("apgd-ce", "apgd-dlr", "apgd-t"):
        apgd = adversary.apgd_targeted if name == "apgd-t" else adversary.apgd
        if name != "apgd-t":
            apgd.loss = name.removeprefix("apgd-")
        apgd.logger = WarningLogger(name, view.observer)
        sieve_apgd(apgd)
        return apgd.perturb(x, y)
    if name == "square":
        return adversary.square.perturb(x, y)
    adversary.fab.targeted = name == "fab-t"
    if adversary.fab.targeted:
        adversary.fab.n_restarts = 1
    return adversary.fab.perturb(x, y)


def _pgd(view: View, x: Tensor, y: Tensor, attack: Pgd, eps: float, seed: int) -> Tensor:
    generator = torch.Generator(x.device).manual_seed(seed)
    with torch.enable_grad():
        return pgd(view, x, y, eps=eps, alpha=attack.step * eps, steps=attack.steps, generator=generator)


def check_labels(y: Tensor, classes: int) -> None:
    """Labels are class numbers of this network."""
    wrong = ((y < 0) | (y >= classes)).nonzero()
    if len(wrong):
        i = int(wrong[0, 0])
        raise UserError(f"label y[{i}] = {int(y[i])} is out of range: the network has {classes} classes (labels 0 to {classes - 1})")


def check_classes(spec: EvalSpec, classes: int) -> None:
    """The targeted attacks need that many other classes, and their loss the four largest logits."""
    if not isinstance(spec.attack, Custom | Standard):
        return
    budget = spec.attack.budget
    targeted = [name for name in budget.attacks if name in TARGETED]
    if targeted and budget.targets > classes - 1:
        raise UserError(
            f"evaluation: attack.targets: {budget.targets} of {targeted[0]} are too many, the network has {classes} classes;"
            f" use a custom attack with at most {classes - 1} targets"
        )
    for name in budget.attacks:
        if classes < (least := LEAST_CLASSES.get(name, 2)):
            raise UserError(f"evaluation: attack.attacks: {name} needs at least {least} classes; the network has {classes}")


def check_ball(adversarial: Tensor, x: Tensor, spec: EvalSpec, name: str) -> None:
    """An attack that left its ball would report a number that is too low."""
    away = (adversarial - x).flatten(1)
    size = away.abs().amax(1) if spec.norm == "Linf" else away.norm(dim=1)
    if size.max() > spec.radius * (1 + 1e-4) + 1e-6 or adversarial.min() < 0 or adversarial.max() > 1:
        raise RuntimeError(f"{name} returned an image outside of the {spec.norm} ball of radius {spec.eps} or of [0, 1]")
