"""Recorded training steps of the official HYDRA and RST programs, repeated by the suite's methods.

Forced is what is judged: from the recorded state, along the recorded attack, and once more with the recorded gradients in the optimiser.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from math import inf
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from baselines import hydra, rst
from methods.attacks.pgd import kl_sum, uniform_start
from methods.data.split import Batch
from methods.pruning.makers import select
from tests.golden.check import Check, rel
from tests.golden.official import Lessons, Official

EXACT = 0.0
Inputs = Callable[[int], tuple[Tensor, Tensor]]  # pixels and noise of a step
AttackChecks = Callable[[Lessons, int, dict[str, Tensor]], list[Check]]


def differing(ours: Tensor, recorded: Tensor) -> float:
    """How many entries differ."""
    return float((ours.double() != recorded.double().view(ours.shape)).sum())


def hydra_lessons(official: Official, phase: str) -> tuple[Lessons, list[Check]]:
    """A phase that takes over the recorded start as its parent's result."""
    recipe, eps = hydra.RECIPE["run"], official.number("epsilon")
    options = (
        recipe["options"] | hydra.RECIPE["phases"][phase]["run"].get("options", {}) | {"beta": official.number("beta"), "counts": "fixed"}
    )
    attack = {"name": "trades", "steps": int(official["steps_attack"]), "step": official.number("step_size") / eps}
    pruned = {} if phase == "pretrain" else {"sparsity": official.sparsity(), "p": 1.0}
    spec = recipe | {
        "method": "hydra",
        "phase": phase,
        "dataset": "cifar10",
        "seed": 0,
        "eps": repr(eps),
        "attack": attack,
        "options": options,
    }
    spec = {key: value for key, value in spec.items() if key not in ("sparsity", "p")} | pruned | {"train": sgd(official)}
    net, state, parent = official.net(affine=True, bias=True), official.after(-1), None
    if phase != "pretrain":
        shapes = {name: conv.weight.shape for name, conv in net.convs()}
        parent = {name: t for name, t in state.items() if name.startswith("net.")} | {
            f"net.{name}": getattr(net, name) for name in ("mean", "std")
        }
        for name, shape in shapes.items():
            made = {kind: state[f"maker.{name}.{kind}"].view(shape) for kind in ("weight", "scores")}
            parent[f"net.{name}.weight"] = made["weight"]
            parent |= {f"maker.{name}.{kind}": t for kind, t in made.items()} if phase == "finetune" else {}
    lessons = Lessons(official, hydra.METHOD, spec, net, parent)
    ours = lessons.tensors()
    taken = [name for name in state if phase != "pretrain" and name.endswith(".scores")]
    return lessons, [Check("scores taken over", rel(ours[name], state[name].view(ours[name].shape)), 1e-6, name) for name in taken]


def rst_lessons(official: Official) -> Lessons:
    """Pixels are the recorded inputs mapped so that the recorded valid range is [0, 1]; the network undoes that."""
    eps, alpha = int(official["eps_255"]), int(official["alpha_255"])
    attack = rst.RECIPE["run"]["attack"] | {"steps": int(official["steps_attack"]), "step": alpha / eps}
    spec = rst.RECIPE["run"] | {"method": "rst", "dataset": "cifar10", "seed": 0, "eps": f"{eps}/255", "attack": attack}
    net = official.net(affine=False, bias=False)
    low, span = official["lower_limit"].double(), (official["upper_limit"].double() - official["lower_limit"].double())
    net.mean.copy_(-low / span)
    net.std.copy_(1 / span)
    return Lessons(official, rst.METHOD, spec | {"sparsity": official.sparsity(), "train": sgd(official)}, net)


def sgd(official: Official) -> dict:
    return {"optimizer": "sgd", "lr": 1.0} | {name: official.number(name) for name in ("momentum", "weight_decay")}


def masks(lessons: Lessons, prefix: str) -> list[Check]:
    """Masks of the scores that are in place now."""
    official, makers, checks = lessons.official, lessons.method.realisation.makers, []
    for layer, recorded in official.group(prefix).items():
        maker = makers[official.module(layer)]
        checks.append(Check("kept counts", abs(maker.kept - int(recorded.sum())), EXACT, f"{prefix} {layer}"))
        checks.append(Check("masks", differing(select(maker.scores.detach(), maker.kept), recorded), EXACT, f"{prefix} {layer}"))
    return checks


def other_signs(lessons: Lessons, t: int, first: float, later: float) -> list[Check]:
    recorded = lessons.official[f"attack_sign/{t}"]
    checks = [Check("number of attack gradients", abs(len(lessons.grads) - len(recorded)), EXACT, f"step {t}")]
    for i, (ours, signs) in enumerate(zip(lessons.grads, recorded, strict=False)):
        quantity = "share of other signs" + (", first iteration" if i == 0 and first != later else "")
        share = (ours.sign() != signs).double().mean().item()
        checks.append(Check(quantity, share, later if i else first, f"step {t}.{i}"))
    return checks


def kl_attack(lessons: Lessons, t: int, logs: dict[str, Tensor]) -> list[Check]:
    """TRADES' attack and loss. Forward passes: clean, then in eval mode clean and the iterates, then adversarial."""
    official, note = lessons.official, f"step {t}"
    _, clean, *iterates, last = lessons.seen
    divergences = torch.stack([kl_sum(F.softmax(clean.logits, 1), seen.logits) for seen in iterates])
    return [
        *other_signs(lessons, t, 5e-3, 5e-4),
        Check("attack gradient, fifth iteration", rel(lessons.grads[4], official[f"attack_grad_it4/{t}"]), 1e-4, note),
        Check("attack divergences", rel(divergences, official["kl_attack"][t][: len(divergences)]), 5e-4, note),
        Check("adversarial images", rel(last.x, official[f"adv/{t}"]), 1e-6, note),
        Check("clean cross-entropy", rel(logs["ce"], official["ce"][t]), 1e-5, note),
        Check("divergence", rel(logs["kl"] * len(last.x), official["kl_sum"][t]), 5e-5, note),
    ]


def pgd_attack(lessons: Lessons, t: int, logs: dict[str, Tensor]) -> list[Check]:
    """RST's attack, compared in the recording's normalised units. Forward passes: the iterates, then the adversarial images."""
    official, note = lessons.official, f"step {t}"
    *iterates, last = lessons.seen
    losses = torch.stack([F.cross_entropy(seen.logits, official[f"y/{t}"]) for seen in iterates])
    pixels, span = rst_pixels(official, t), official["upper_limit"].double() - official["lower_limit"].double()
    start = (
        uniform_start(pixels, lessons.method.eps, rst_draw(official, t)) - pixels
    )  # in double: a float32 pixel is coarser than the tolerance
    adv = last.x.double() * span + official["lower_limit"].double()
    return [
        Check("random start", rel(start * span, official[f"delta0/{t}"]), 1e-6, note),
        *other_signs(lessons, t, 5e-4, 5e-4),
        Check("attack losses", rel(losses, official["loss_attack"][t][: len(losses)]), 1e-5, note),
        Check("adversarial images", rel(adv, official[f"adv/{t}"]), 1e-6, note),
    ]


def rst_pixels(official: Official, t: int) -> Tensor:
    low, high = official["lower_limit"].double(), official["upper_limit"].double()
    return (official[f"x/{t}"].double() - low) / (high - low)


def rst_draw(official: Official, t: int) -> Tensor:
    return (official[f"delta0_raw/{t}"].double() / official["eps_norm"].double() + 1) / 2


def forced(lessons: Lessons, inputs: Inputs, attack_checks: AttackChecks) -> list[Check]:
    """Every step from its recorded state, along the recorded attack."""
    official, method, parameters, checks = lessons.official, lessons.method, lessons.parameters(), []
    expected = {official.tensor_name(name) for name, flag in official.group("trainable").items() if flag}
    checks.append(Check("set of trained tensors", len(expected ^ set(parameters)), EXACT, str(sorted(expected ^ set(parameters))[:3])))
    lessons.load(official.after(-1))
    checks += masks(lessons, "mask_init")
    for t in official.steps():
        note, before, after = f"step {t}", official.after(t - 1), official.after(t)
        lessons.load(before)
        start = {name: tensor.clone() for name, tensor in lessons.tensors().items()}
        x, draw = inputs(t)
        method.optimizer.param_groups[0]["lr"] = float(official["lr"][t])
        method.optimizer.zero_grad(set_to_none=True)
        with lessons.taught(official[f"attack_sign/{t}"], draw):
            loss, logs = method.loss(Batch(x, official[f"y/{t}"], torch.arange(len(x))), method.draws("step"))
        checks.append(Check("loss", rel(loss.detach(), official["loss"][t]), 1e-5, note))
        checks += attack_checks(lessons, t, logs)
        loss.backward()
        method.pull()
        grads = {name: g.view(parameters[name].shape) for name, g in official.state(f"grad{t}").items() if name in parameters}
        live = {name for name, parameter in parameters.items() if parameter.grad is not None}
        checks.append(Check("set of gradients", len(live ^ set(official.state(f"grad{t}"))), EXACT, note))
        checks += [Check("gradients", rel(parameters[name].grad, g), 3e-4, f"{note} {name}") for name, g in grads.items()]
        momentum = copy.deepcopy(method.optimizer.state_dict())
        method.optimizer.step()
        checks += state_checks(lessons, start, after, official.state(f"after{t}"), note)
        with torch.no_grad():
            for name, parameter in parameters.items():
                parameter.copy_(start[name])
                parameter.grad = grads[name].clone() if name in grads else None
        method.optimizer.load_state_dict(momentum)  # which thus only ever knows recorded gradients
        method.optimizer.step()
        for name in grads:
            deviation = rel(parameters[name].detach(), after[name].view(parameters[name].shape))
            checks.append(Check("recorded gradients in our optimiser", deviation, 5e-7, f"{note} {name}"))
        lessons.load(after)
        checks += masks(lessons, f"mask{t}")
    return checks


def state_checks(lessons: Lessons, start: dict[str, Tensor], after: dict[str, Tensor], moved: dict[str, Tensor], note: str) -> list[Check]:
    """The state that our own step leaves; made weights of the network follow from the makers and are left out."""
    checks, ours = [], {name: tensor for name, tensor in lessons.tensors().items() if name in after}
    changed = {name for name, tensor in ours.items() if not torch.equal(tensor, start[name])}
    checks.append(Check("set of moved tensors", len(changed ^ set(moved)), EXACT, f"{note} {sorted(changed ^ set(moved))[:3]}"))
    for name, tensor in ours.items():
        if name.endswith("num_batches_tracked"):
            checks.append(Check("number of statistics updates", differing(tensor, after[name]), EXACT, f"{note} {name}"))
            continue
        running = "running" in name
        deviation = rel(tensor.detach(), after[name].view(tensor.shape))
        checks.append(
            Check("running statistics" if running else "tensors after the step", deviation, 1e-5 if running else 5e-5, f"{note} {name}")
        )
    return checks


def free(lessons: Lessons, inputs: Inputs) -> list[Check]:
    """All steps in a row, attacks left to themselves: reported, not judged, because one flipped sign moves everything after it."""
    official, method, checks = lessons.official, lessons.method, []
    lessons.load(official.after(-1))
    for t in official.steps():
        x, draw = inputs(t)
        method.optimizer.param_groups[0]["lr"] = float(official["lr"][t])
        method.optimizer.zero_grad(set_to_none=True)
        with lessons.taught(None, draw):
            loss, _ = method.loss(Batch(x, official[f"y/{t}"], torch.arange(len(x))), method.draws("step"))
        loss.backward()
        method.pull()
        method.optimizer.step()
        method.push()
        checks.append(Check("free: loss", rel(loss.detach(), official["loss"][t]), inf, f"step {t}"))
    return checks


def hydra_steps(path: Path, phase: str) -> list[Check]:
    official = Official(path)

    def inputs(t: int) -> tuple[Tensor, Tensor]:
        return official[f"x/{t}"], official[f"noise/{t}"]

    lessons, checks = hydra_lessons(official, phase)
    return checks + forced(lessons, inputs, kl_attack) + free(hydra_lessons(official, phase)[0], inputs)


def rst_steps(path: Path) -> list[Check]:
    official = Official(path)

    def inputs(t: int) -> tuple[Tensor, Tensor]:
        return rst_pixels(official, t).float(), rst_draw(official, t).float()

    return forced(rst_lessons(official), inputs, pgd_attack) + free(rst_lessons(official), inputs)
