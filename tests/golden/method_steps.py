"""Recorded training steps of the paper's own code, repeated by the suite's methods.

Forced is what is judged: from the recorded state, along the recorded attack, with the recorded gradients in the optimiser. Besides, all
steps are run freely from the recorded start; that is reported and never judged, because an attack is chaotic: one flipped sign of a
gradient near zero moves everything after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from math import inf
from pathlib import Path
from types import ModuleType

import torch
from torch import Tensor

from methods.core.allocation import allocate, keep_fraction
from methods.data.split import Batch
from methods.pruning.makers import select
from methods.training.validation import validate
from tests.golden.check import Check, rel
from tests.golden.method_attacks import EXACT, STATISTICS, mismatches, pgd_checks
from tests.golden.recorded import Recording, Replay, conv_table

AFFINE = (("bn_gamma", "grad_gamma", "weight"), ("bn_beta", "grad_beta", "bias"))
AttackChecks = Callable[[Replay, str, Batch], list[Check]]


def layerwise(quantity: str, ours: list[Tensor], recorded: list[Tensor], tolerance: float, note: str) -> list[Check]:
    return [
        Check(quantity, rel(a.detach(), b), tolerance, f"{note} layer {i}") for i, (a, b) in enumerate(zip(ours, recorded, strict=True))
    ]


def spec_of(recording: Recording, module: ModuleType, attack: dict | None = None) -> dict:
    """The run that a file recorded: the method's recipe with the file's numbers."""
    spec = dict(module.RECIPE["run"], method=module.__name__.split(".")[-1], dataset="cifar10", seed=0, eps=0, attack={"name": "none"})
    if attack is not None:
        eps, alpha = recording.number("hyper.eps"), recording.number("hyper.alpha")
        steps = {"steps": int(recording.number("hyper.iters"))} if "hyper.iters" in recording else {}
        spec |= {"eps": repr(eps), "attack": attack | steps | {"step": alpha / eps}, "validate": steps | {"step": alpha / eps}}
    if "keep" in recording:
        spec |= {"sparsity": float(1 - Decimal(repr(recording.number("keep")))), "p": recording.number("p")}
    if "hyper.lr" in recording:
        names = [name for name in ("lr", "weight_decay", "momentum") if f"hyper.{name}" in recording]
        chosen = {"optimizer": "sgd" if "momentum" in names else "adam", "batch": len(recording.tensor("s0.logits"))}
        spec["train"] = chosen | {name: recording.number(f"hyper.{name}") for name in names}
    if "hyper.trades_beta" in recording:
        spec["options"] = spec["options"] | {"beta": recording.number("hyper.trades_beta")}
    return spec


def structure(replay: Replay) -> list[Check]:
    """The layer table, and for a pruned network how many weights each layer keeps."""
    recording = replay.recording
    checks = [Check("layer table", mismatches(torch.tensor(conv_table(replay.net)), recording.layers[:, 3:]), EXACT)]
    if "kept" in recording:
        sizes, spec = recording.layers[:, -1].tolist(), replay.method.spec
        fractions = torch.tensor(allocate(sizes, keep_fraction(spec["sparsity"]), spec["p"]), dtype=torch.float64)
        kept = torch.tensor([maker.kept for maker in replay.method.realisation.makers.values()])
        checks.append(Check("kept fractions", rel(fractions, recording.tensor("keep_fraction")), 1e-12))
        checks.append(Check("kept counts", mismatches(kept, recording.tensor("kept")), EXACT))
    return checks


def mask_check(replay: Replay, key: str) -> Check:
    makers = replay.method.realisation.makers.values()
    ours = torch.cat([select(maker.scores.detach(), maker.kept).reshape(-1) for maker in makers])
    return Check("masks", mismatches(ours, replay.recording.tensor(key)), EXACT, key)


def statistics(replay: Replay, prefix: str, quantity: str, tolerance: float = STATISTICS) -> list[Check]:
    """Running statistics now, and how often they have been updated."""
    mean, var = replay.statistics()
    count = replay.recording.tensor(f"{prefix}bn_updates")
    return [
        Check(f"running mean {quantity}", rel(mean, replay.recording.tensor(f"{prefix}bn_mean")), tolerance, prefix),
        Check(f"running variance {quantity}", rel(var, replay.recording.tensor(f"{prefix}bn_var")), tolerance, prefix),
        Check("number of statistics updates", mismatches(replay.updates(), count), EXACT, prefix),
    ]


def batches(replay: Replay) -> Iterator[tuple[str, str, Batch]]:
    """(prefix of the state before, prefix of the step, batch) of each step."""
    recording, before = replay.recording, "init."
    for i in recording.steps():
        step = f"s{i}."
        if f"{step}index" in recording:
            index = recording.tensor(f"{step}index")
            x, y = recording.tensor("x")[index], recording.tensor("y")[index]
        else:
            x, y = recording.tensor(f"{step}x"), recording.tensor(f"{step}y")
            index = torch.arange(len(x))
        yield before, step, Batch(x.contiguous(memory_format=replay.method.layout), y, index)
        before = step


def draw_of(replay: Replay, step: str) -> Tensor | None:
    """The recorded noise of a step's attack; ATTA's recorded windows are put in place."""
    recording = replay.recording
    if f"{step}crop_h" in recording:
        windows = tuple(recording.tensor(f"{step}{name}") for name in ("crop_h", "crop_w", "flip"))
        replay.method.attack.draw = lambda count, generator: windows
        return None
    return recording.tensor(f"{step}u" if f"{step}u" in recording else f"{step}z")


def put_canvas(replay: Replay, step: str, batch: Batch) -> None:
    if f"{step}canvas_before" in replay.recording:
        replay.method.attack.canvas.store[batch.index] = replay.recording.tensor(f"{step}canvas_before")


def trained_tensors(replay: Replay, trained: str) -> Iterator[tuple[str, str, list[torch.nn.Parameter], Callable[[str], list[Tensor]]]]:
    """(key of the values, key of the gradients, our parameters, how to cut the recorded vector) of everything that is trained."""
    recording = replay.recording
    yield trained, "grad", replay.parameters(trained), recording.per_layer
    for value, grad, name in AFFINE:
        if f"init.{value}" in recording:
            yield value, grad, [getattr(norm, name) for norm in replay.net.norms()], recording.per_norm


def forced(replay: Replay, trained: str, attack_checks: AttackChecks) -> list[Check]:
    """Every step from its recorded state."""
    recording, method, checks = replay.recording, replay.method, []
    for before, step, batch in batches(replay):
        replay.load(before, trained)
        put_canvas(replay, step, batch)
        if f"{step}binweights" in recording:
            ours = torch.cat([conv.weight.detach().reshape(-1) for _, conv in replay.net.convs()])
            checks.append(Check("binary weights", mismatches(ours, recording.tensor(f"{step}binweights")), EXACT, step))
        method.optimizer.zero_grad(set_to_none=True)
        signs = recording.tensor(f"{step}attack_sign")
        with replay.taught(signs if signs.ndim == 5 else signs[None], draw_of(replay, step)):
            loss, _ = method.loss(batch, method.draws("step"))
            checks += attack_checks(replay, step, batch)
        logits = replay.seen[-2 if f"{step}logits_adv" in recording else -1].logits  # TRADES: clean images, then adversarial ones
        checks.append(Check("loss", rel(loss.detach().view(1), recording.tensor(f"{step}loss")), 5e-6, step))
        checks.append(Check("logits", rel(logits, recording.tensor(f"{step}logits")), 2e-4, step))
        checks += statistics(replay, step, "after the step")
        loss.backward()
        method.pull()
        for value, grad, parameters, cut in trained_tensors(replay, trained):
            checks += layerwise(f"gradient of {value}", [p.grad for p in parameters], cut(f"{step}{grad}"), 1e-4, step)
            for parameter, recorded in zip(parameters, cut(f"{step}{grad}"), strict=True):
                parameter.grad.copy_(recorded)
        method.optimizer.step()
        for value, _, parameters, cut in trained_tensors(replay, trained):
            checks += layerwise(f"{value} after the optimiser", parameters, cut(f"{step}{value}"), 1e-6, step)
        if f"{step}mask_next" in recording:
            checks.append(mask_check(replay, f"{step}mask_next"))
    return checks


def free(replay: Replay, trained: str) -> list[Check]:
    """All steps in a row from the recorded start, attacks left to themselves."""
    method, checks = replay.method, []
    replay.load("init.", trained)
    for _, step, batch in batches(replay):
        if f"{step}pass" in replay.recording and replay.recording.number(f"{step}pass") == 0:
            put_canvas(replay, step, batch)  # later passes find what ours has left there
        method.optimizer.zero_grad(set_to_none=True)
        with replay.taught(None, draw_of(replay, step)):
            loss, _ = method.loss(batch, method.draws("step"))
        pixels = (replay.seen[-1].x != replay.recording.tensor(f"{step}x_adv")).float().mean().item()
        loss.backward()
        method.pull()
        method.optimizer.step()
        ours = torch.cat([p.detach().reshape(-1) for p in replay.parameters(trained)])
        method.push()
        checks.append(Check("free: share of other adversarial pixels", pixels, inf, step))
        checks.append(Check(f"free: {trained}", rel(ours, replay.recording.tensor(f"{step}{trained}")), inf, step))
    return checks


class _OneBatch:
    """A split of one recorded batch."""

    def __init__(self, batch: Batch):
        self.batch = batch

    def __len__(self) -> int:
        return len(self.batch.y)

    def batches(self, **_) -> list[Batch]:
        return [self.batch]


def validation(replay: Replay, trained: str) -> list[Check]:
    """The validation attack, in eval mode, on the network after the last step."""
    recording, checks = replay.recording, []
    replay.load(f"s{recording.steps()[-1]}.", trained)
    replay.load_norms("eval.")
    batch = Batch(recording.tensor("eval.x"), recording.tensor("eval.y"), torch.arange(len(recording.tensor("eval.y"))))
    with replay.taught(recording.tensor("eval.attack_sign"), recording.tensor("eval.u")):
        validate(replay.method, replay.net, _OneBatch(batch), 0)
        checks += pgd_checks(replay, "eval.", batch)
    checks.append(Check("logits of validation", rel(replay.seen[-1].logits, recording.tensor("eval.logits")), 2e-5))
    return checks + statistics(replay, "eval.", "after validation", EXACT)


def steps(path: Path, module: ModuleType, attack: dict, *, trained: str, attack_checks: AttackChecks) -> list[Check]:
    """All comparisons of a file of training steps."""
    recording = Recording(path)

    def fresh() -> Replay:
        replay = Replay(recording, module.METHOD, spec_of(recording, module, attack))
        replay.net.train()
        if trained == "scores":
            replay.put("weights", "init.weights")
        return replay

    replay = fresh()
    checks = structure(replay) + forced(replay, trained, attack_checks)
    if "eval.x" in recording:
        checks += validation(replay, trained)
    return checks + free(fresh(), trained)
