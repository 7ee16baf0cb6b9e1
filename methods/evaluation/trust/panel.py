"""The measured checks of the trust panel, on images of an evaluation's first block."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from msgspec import structs
from torch import Tensor, nn

from methods.core.eval_result import CLEAN, ROBUST, BlockResult
from methods.core.eval_spec import Attack, Custom, EvalSpec, Pgd, Standard
from methods.core.trust import FAIL, NOT_APPLICABLE, PASS, WARN, Check, Panel, overestimate
from methods.core.trust_checks import FEW, LEAST_SUCCESS, POOR_SUCCESS
from methods.evaluation.attacked_net import AttackedNet, View
from methods.evaluation.block import attack_block
from methods.evaluation.trust import binarisation
from methods.evaluation.trust.budget import IMAGES, LEAST_ITERATIONS, SHARES, Afforded, Counter, afford, allowed
from methods.evaluation.trust.features import Counted, features_of
from methods.evaluation.trust.gradients import without_gradient
from methods.evaluation.trust.temperature import Scaled

LARGE = 0.5
POINTS, TRIES = 500, 100  # inner points of a planted image, and random corners that are tried on it
RANDOM_LIMIT = 0.5  # where random search finds more than this share, planted images are too easy to say anything


def measure(
    net: AttackedNet,
    original: nn.Module,
    x: Tensor,
    y: Tensor,
    block: BlockResult,
    spec: EvalSpec,
    total: int,
    chunk: int | None = None,
) -> Panel:
    """The panel of an evaluation of `total` examples whose first block (x, y) had this result. The dense network is looked at.

    `chunk` is how many images at once the evaluation has found room for.
    """
    budget = allowed(block.passes, len(x), total)
    probe = Probe(net=net.dense, original=original, x=x, y=y, block=block, spec=spec, budget=budget, chunk=chunk)
    makers: tuple[Callable[[], Check], ...] = (
        probe.randomness,
        probe.gradients,
        probe.temperature,
        probe.iterations,
        probe.large_radius,
        probe.square,
        probe.binarisation,
    )
    checks = tuple(maker() for maker in makers)
    return Panel(checks=checks, passes=sum(check.passes for check in checks), allowed=probe.budget)


@dataclass(frozen=True, kw_only=True)
class Probe:
    """A network, the first block of its evaluation, and what looking at them may cost."""

    net: nn.Module
    original: nn.Module
    x: Tensor
    y: Tensor
    block: BlockResult
    spec: EvalSpec
    budget: int
    chunk: int | None = None

    @property
    def robust(self) -> float:
        return self.block.broken.count(ROBUST) / len(self.block.broken)

    def rows(self, *, survivors: bool) -> list[int]:
        """Images that withstood everything, or all that are classified right as they are."""
        return [i for i, b in enumerate(self.block.broken) if (b == ROBUST if survivors else b != CLEAN)]

    def attack(self, net: nn.Module, rows: list[int], attack: Attack, name: str, **changes: float | str) -> tuple[int, int]:
        """How many of these images an attack breaks, and what it cost."""
        counter, spec = Counter(), structs.replace(self.spec, attack=attack, **changes)
        frozen = AttackedNet(net, fast=False)
        broken = attack_block(
            frozen, self.x[rows], self.y[rows], spec=spec, seed=self.seed(name), observer=counter, chunk=self.chunk, check=False
        )
        return sum(b != ROBUST for b in broken), counter.count

    def view(self, counter: Counter) -> View:
        return View(AttackedNet(self.net, fast=False), counter, chunk=self.chunk)

    def seed(self, name: str) -> int:
        return int(hashlib.sha256(f"trust:{self.spec.seed}:{name}".encode()).hexdigest()[:8], 16) & 0x7FFFFFFF

    def share(self, name: str) -> float:
        return SHARES[name] * self.budget

    def too_dear(self, name: str) -> Check:
        text = f"the evaluation is too small: {int(self.share(name))} passes through the network are a fair share of it, and too few"
        return Check(name=name, state=NOT_APPLICABLE, number=None, text=text)

    def few(self, name: str, cost: int) -> list[int]:
        """Rows that are classified right, as many as a check of that cost per image can have."""
        return self.rows(survivors=False)[: min(IMAGES[0], int(self.share(name) / cost))]

    def randomness(self) -> Check:
        rows, counter = self.few("randomness", 2), Counter()
        if not rows:
            return self.nothing("randomness")
        with torch.no_grad():
            view = self.view(counter)
            first, second = (F.normalize(view(self.x[rows]), dim=1) for _ in range(2))
        changed = int(((first - second).norm(dim=1) > 1e-4).sum())
        text = f"{changed} of {len(rows)} images got other logits the second time"
        return Check(
            name="randomness",
            state=FAIL if changed else PASS,
            number=changed / len(rows),
            text=text,
            images=len(rows),
            passes=counter.count,
        )

    def nothing(self, name: str) -> Check:
        if self.rows(survivors=False):
            return self.too_dear(name)
        return Check(name=name, state=NOT_APPLICABLE, number=None, text="no image of the first block is classified right")

    def gradients(self) -> Check:
        rows, counter = self.few("gradients", 4), Counter()
        if not rows:
            return self.nothing("gradients")
        saturated, flat = without_gradient(self.view(counter), self.x[rows], self.y[rows])
        blind = set(self.spec.attack.names) <= {"pgd", "apgd-ce"}
        bad = flat > FEW * len(rows) or (blind and saturated > FEW * len(rows))
        text = f"the cross-entropy of {saturated} of {len(rows)} images has no gradient, the margin of {flat}"
        return Check(
            name="gradients",
            state=FAIL if bad else WARN if saturated or flat else PASS,
            number=max(saturated, flat) / len(rows),
            text=text,
            images=len(rows),
            passes=counter.count,
        )

    def further(
        self,
        name: str,
        what: str,
        *,
        per_iteration: int,
        most: int,
        least: int = LEAST_ITERATIONS,
        run: Callable[[list[int], Afforded], tuple[int, int]],
    ) -> Check:
        """A further attack on survivors, as many and for as long as its share of the budget allows."""
        rows = self.rows(survivors=True)
        if not rows:
            return overestimate(name, 0, 0, self.robust, what, 0)
        afforded = afford(self.share(name), available=len(rows), fixed=4, per_iteration=per_iteration, most=most, least=least)
        if afforded is None:
            return self.too_dear(name)
        chosen = rows[: afforded.images]
        broken, passes = run(chosen, afforded)
        return overestimate(name, broken, len(chosen), self.robust, f"{what} ({afforded.iterations} iterations)", passes)

    def temperature(self) -> Check:
        def run(rows: list[int], afforded: Afforded) -> tuple[int, int]:
            with torch.no_grad():
                spread = float(self.view(Counter())(self.x[rows]).std(1).mean().clamp_min(1e-12))
            attack = Custom(attacks=("apgd-ce",), apgd_iter=afforded.iterations)
            broken, passes = self.attack(Scaled(self.net, spread), rows, attack, "temperature")
            return broken, passes + len(rows)

        return self.further("temperature", "APGD on logits divided by their spread", per_iteration=2, most=100, run=run)

    def iterations(self) -> Check:
        attack, targets, most = self.spec.attack, 1, 200
        kind = "apgd-ce"
        if isinstance(attack, Custom | Standard):
            budget = attack.budget
            kind = next((name for name in reversed(budget.attacks) if name.startswith("apgd")), kind)
            targets, most = (min(3, budget.targets) if kind == "apgd-t" else 1), 2 * budget.apgd_iter

        def run(rows: list[int], afforded: Afforded) -> tuple[int, int]:
            if isinstance(attack, Pgd):
                longer: Attack = structs.replace(attack, steps=min(2 * attack.steps, afforded.iterations))
            else:
                longer = Custom(attacks=(kind,), apgd_iter=afforded.iterations, targets=targets)  # type: ignore[arg-type]
            return self.attack(self.net, rows, longer, "iterations")

        if isinstance(attack, Pgd):
            kind, most = "pgd", 2 * attack.steps
        return self.further("iterations", f"{kind} from another start", per_iteration=2 * targets, most=most, least=most // 2, run=run)

    def square(self) -> Check:
        """Only where the evaluation does without: else its own Square tells more, on all images."""
        if "square" in self.spec.attack.names and len(self.spec.attack.names) > 1:
            return Check(name="square", state=PASS, number=None, text="part of the evaluation itself")

        def run(rows: list[int], afforded: Afforded) -> tuple[int, int]:
            return self.attack(self.net, rows, Custom(attacks=("square",), square_queries=afforded.iterations), "square")

        return self.further("square", "Square, which needs no gradient,", per_iteration=1, most=1000, run=run)

    def large_radius(self) -> Check:
        rows = self.rows(survivors=False)
        if not rows:
            return self.nothing("large_radius")
        afforded = afford(self.share("large_radius"), available=len(rows), fixed=4, per_iteration=2, most=20)
        if afforded is None:
            return self.too_dear("large_radius")
        rows = rows[: afforded.images]
        attack = Custom(attacks=("apgd-ce",), apgd_iter=afforded.iterations)
        broken, passes = self.attack(self.net, rows, attack, "large_radius", eps=LARGE, norm="Linf")
        left = len(rows) - broken
        text = f"{left} of {len(rows)} images withstand APGD ({afforded.iterations} iterations) at Linf radius {LARGE}"
        state = PASS if left == 0 else WARN if left <= FEW * len(rows) else FAIL
        return Check(name="large_radius", state=state, number=left / len(rows), text=text, images=len(rows), passes=passes)

    def binarisation(self) -> Check:
        name, features = "binarisation", features_of(self.original)
        if features is None or self.spec.norm != "Linf":
            why = "the features before the last layer of this network are not known" if features is None else "planted in Linf balls only"
            return Check(name=name, state=NOT_APPLICABLE, number=None, text=why)
        counter = Counter()
        fixed = POINTS + 2 + TRIES + 1
        afforded = afford(self.share(name), available=len(self.x), fixed=fixed, per_iteration=2, most=100)
        if afforded is None:
            return self.too_dear(name)
        x, eps = self.x[: afforded.images], self.spec.radius
        generator = torch.Generator().manual_seed(self.seed(name))
        counted = Counted(features, counter, min(self.chunk or 2 * IMAGES[0], 2 * IMAGES[0]))
        with torch.no_grad():
            planted, _, separated = binarisation.plant(counted, x, eps=eps, points=POINTS, generator=generator)
            easy = binarisation.random_search(planted, x, eps=eps, tries=TRIES, generator=generator)[separated].float().mean()
            hit = binarisation.find(planted, x, eps=eps, iterations=afforded.iterations, seed=self.seed(name))[separated]
        count = len(hit)
        if count == 0 or float(easy) > RANDOM_LIMIT:
            text = f"{count} of {len(x)} images could be planted, and random search finds {float(easy) if count else 0:.0%} of them"
            return Check(name=name, state=NOT_APPLICABLE, number=None, text=text, images=count, passes=counter.count)
        rate = float(hit.float().mean())
        text = f"APGD ({afforded.iterations} iterations) found {int(hit.sum())} of {count} planted images; random search {float(easy):.0%}"
        state = PASS if rate >= LEAST_SUCCESS else WARN if rate >= POOR_SUCCESS else FAIL
        return Check(name=name, state=state, number=rate, text=text, images=count, passes=counter.count)
