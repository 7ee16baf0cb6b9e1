"""Recorded training steps of ATMC, repeated by the method itself on the recordings' small network.

Each batch starts from the recorded state before it and trains on the recorded adversarial batch, after our own attack has been compared
with it; the codebooks start from the recorded seeds. Everything else is what training does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from baselines.atmc import RECIPE
from methods.attacks.pgd import mode, pgd
from methods.data.split import Batch
from methods.training.optim import optimizer
from tests.golden.atmc_chain import MEAN, STD, Chain, Replay
from tests.golden.check import Check, rel
from tests.golden.folders import Folder, worst

LLOYD = {key: RECIPE["phases"]["quantised"]["run"]["options"]["quantiser"][key] for key in ("iterations", "tolerance")}
FLIPS = 0.01  # share of pixels that a float32 attack may move the other way: a gradient near zero has no certain sign


def our_name(name: str) -> str:
    """The method's name of a recorded tensor."""
    layer, _, tensor = name.replace("linear", "head").rpartition(".")
    return f"maker.{layer}.{tensor[-1].lower()}" if tensor[:-1] == "weight" else f"net.{layer}.{tensor}"


def ours_of(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {our_name(name): t for name, t in tensors.items() if not name.endswith("eye_const")}


def _method(part: Folder, facts: dict) -> Replay:
    init, x = part.dict("init"), part["x"]
    factorised = facts["phase"] > 2
    suffix = ".weightC" if factorised else ".weight"
    shapes = {n.removesuffix(suffix): tuple(t.shape) for n, t in init.items() if n.endswith(suffix) and not n.startswith("bn")}
    net = Chain(shapes, normalised=facts["script"] != "c10", dtype=x.dtype)
    batch, interval = x.shape[1], facts["quant_interval"]
    quantiser = {"bits": facts["bits"], "rho": facts["rho"], "interval": interval, "seeds": "random", "mask": "none", **LLOYD}
    spec = {
        "method": "atmc",
        "phase": {2: "sparse", 3: "factorised", 4: "quantised"}[facts["phase"]],
        "seed": 0,
        "eps": f"{facts['eps_255']}/255",
        "sparsity": 1 - (facts["k"] + 0.5) / facts["n_dense"],  # rounds down to k
        "p": "global",
        "init": {"weights": "default"},
        "attack": RECIPE["run"]["attack"] | {"steps": facts["attack_steps"], "step": 1.25 / facts["attack_steps"]},
        "train": {"optimizer": "sgd", "batch": batch, **{key: facts[key] for key in ("lr", "momentum", "weight_decay")}},
        "options": {"w_clean": 0.5 if facts["script"] == "c10" else 0, "factorise": factorised, "quantiser": quantiser},
    }
    state = {f"net.{name}": t for name, t in net.state_dict().items()}
    start = {name: t.reshape(state[name].shape) if name in state else t.flatten(1) for name, t in ours_of(init).items()}
    longer = (len(x) + interval + 1) * batch  # the recorded batches are the first of a longer epoch
    method = Replay(spec, longer, net, {**state, **start})
    method.optimizer = optimizer(method.trainables(), spec["train"])
    return method


def parameters(method: Replay) -> dict[str, nn.Parameter]:
    parameters = {f"net.{name}": p for name, p in method.net.named_parameters()}
    return parameters | {f"maker.{layer}.{n}": p for layer, m in method.realisation.makers.items() for n, p in m.named_parameters()}


def _force(method: Replay, before: Folder) -> None:
    """Continue from the recorded state instead of our own."""
    held, moving = method.tensors(), parameters(method)
    for name, t in ours_of(before.dict("state")).items():
        held[name].copy_(t.reshape(held[name].shape))
    for name, t in ours_of(before.dict("momentum")).items():
        method.optimizer.state[moving[name]]["momentum_buffer"].copy_(t.reshape(moving[name].shape))
    if method.admm is not None:
        for part, tensors in (("Z", method.admm.z), ("U", method.admm.u)):
            for name, t in ours_of(before.dict(part)).items():
                tensors[name.removeprefix("maker.")].copy_(t.reshape(tensors[name.removeprefix("maker.")].shape))
    method.push()


def _calls(net: nn.Module) -> tuple[list[tuple[Tensor, Tensor]], Callable[[], None]]:
    """(input, output) of every call of the network from now on, and a function that stops listening."""
    calls: list[tuple[Tensor, Tensor]] = []
    handle = net.register_forward_hook(lambda _, inputs, output: calls.append((inputs[0].detach().clone(), output.detach().clone())))
    return calls, handle.remove


def _pixels(x: Tensor, facts: dict) -> Tensor:
    """Recorded inputs as pixels: the CIFAR-100 runs record normalised ones."""
    if facts["script"] == "c10":
        return x
    mean, std = (torch.tensor(v, dtype=x.dtype).view(1, 3, 1, 1) for v in (MEAN, STD))
    return x * std + mean


def elsewhere(ours: Tensor, recorded: Tensor) -> float:
    """Share of the pixels that are not where they were recorded."""
    return 1 - ((ours - recorded).abs() <= 1e-4).float().mean().item()


def _attack_check(label: str, ours: Tensor, recorded: Tensor, tolerance: float) -> Check:
    """Every pixel in float64; in float32 the share of pixels that went elsewhere."""
    if ours.dtype == torch.float64:
        return Check(label, rel(ours, recorded), tolerance)
    return Check(label, elsewhere(ours, recorded), FLIPS, "share of pixels")


def _step(method: Replay, part: Folder, facts: dict, i: int, tolerance: float) -> Iterator[Check]:
    b, moving = part.at(f"b{i}"), parameters(method)
    x, y = _pixels(part["x"][i], facts), part["y"][i]
    method.recorded_adv = _pixels(b["x_adv"], facts)
    draws = torch.Generator()
    method.net.train()
    calls, stop = _calls(method.net)
    method.optimizer.zero_grad(set_to_none=True)
    loss, logs = method.loss(Batch(x, y, torch.arange(len(y))), draws)
    stop()
    loss.backward()
    method.pull()
    yield _attack_check("x_adv", method.found_adv, method.recorded_adv, tolerance)
    moved = elsewhere(method.found_adv, method.recorded_adv)
    steps = facts["attack_steps"]
    yield Check("forwards", abs(len(calls) - int(b["n_forwards"])), 0)
    sums = torch.stack([F.cross_entropy(out, y, reduction="sum") for _, out in calls[:steps]])
    loose = tolerance if not moved else 1e-3  # after a flip the attacks differ from there on
    yield Check("attack losses", rel(sums, b["attack_loss_sums"].to(sums.dtype)), loose)
    if i == 0 and not moved:
        inputs = torch.stack([each for each, _ in calls])
        yield Check("inputs", rel(inputs, torch.stack([_pixels(each, facts) for each in b["forward_inputs"]])), tolerance)
        yield Check("logits", rel(torch.stack([out for _, out in calls]), b["forward_logits"]), tolerance)
    yield Check("final logits", rel(torch.stack([out for _, out in calls[steps:]]), b["final_logits"]), tolerance)
    terms = [logs["ce_clean"], logs["ce"]] if "ce_clean" in logs else [logs["ce"]]
    yield Check("loss terms", rel(torch.stack(terms), b["loss_terms"].to(loss.dtype)), tolerance)
    if method.admm is not None:
        recorded = b["penalty_sum_of_squares"].double().sum() * facts["rho"] / 2
        yield Check("penalty", rel(logs["penalty"], recorded), tolerance)
    grads = {name: p.grad for name, p in moving.items() if p.grad is not None}
    yield Check("gradients", *_with(tolerance, worst(grads, ours_of(b.dict("grad")))))
    method.optimizer.step()
    yield Check("after SGD", *_with(tolerance, worst(moving, ours_of(b.dict("after_sgd")))))
    fits = sorted({name.rsplit("/", 1)[0] for name in b.at("kmeans").names()})
    method.recorded_seeds = {our_name(name).removeprefix("maker."): b.at("kmeans")[f"{name}/seed_flat_index"] for name in fits}
    method.after_step(i + 1, draws)
    method.push()
    # looked at last, because the projection must leave it alone
    momenta = {name: method.optimizer.state[p]["momentum_buffer"] for name, p in moving.items() if p in method.optimizer.state}
    yield Check("momentum", *_with(tolerance, worst(momenta, ours_of(b.dict("momentum")))))
    held, recorded = method.tensors(), ours_of(b.dict("state"))
    buffers = {name: t for name, t in recorded.items() if "running" in name}
    counts = {name: t for name, t in recorded.items() if "tracked" in name}
    weights = {name: t for name, t in recorded.items() if name not in buffers and name not in counts}
    yield Check("state", *_with(tolerance, worst(held, weights)))
    yield Check("running statistics", *_with(loose, worst(held, buffers)))
    yield Check("batches tracked", max(abs(int(held[name]) - int(t)) for name, t in counts.items()), 0)
    kept = sum(int(t.count_nonzero()) for t in method.compressed().values())
    yield Check("non-zeros of W", abs(kept - int(b["nnz_W"])) + abs(kept - facts["k"]), 0)
    support = sum(float(((held[name].reshape(t.shape) != 0) != (t != 0)).sum()) for name, t in weights.items())
    yield Check("support of W", support, 0, "entries")
    if method.admm is not None:
        yield Check("update", float(method.update_due(i + 1) != (i in facts["quant_batches"])), 0)
        yield Check("fitted tensors", float(i in facts["quant_batches"] and sum(method.admm.fitted.values()) != len(fits)), 0)
        for name, ours in (("Z", method.admm.z), ("U", method.admm.u)):
            tensors = {key.removeprefix("maker."): t for key, t in ours_of(b.dict(name)).items()}
            yield Check(name, *_with(tolerance, worst(ours, tensors)))


def _with(tolerance: float, deviation: tuple[float, str]) -> tuple[float, float, str]:
    return deviation[0], tolerance, deviation[1]


def _final(method: Replay, part: Folder, facts: dict, tolerance: float) -> Iterator[Check]:
    ev, draws = part.at("eval"), torch.Generator()
    x, y = _pixels(ev["x"], facts), ev["y"]
    eps, settings = method.eps, method.spec["attack"]
    with mode(method.net, training=False):
        yield Check("eval logits of W", rel(method.net(x).detach(), ev["logits_W"]), tolerance)
        strength = {"eps": eps, "alpha": settings["step"] * eps, "steps": settings["steps"], "start": "none", "pick": "last"}
        adv = pgd(method.net, x, y, generator=draws, **strength)
        yield _attack_check("eval attack on W", adv, _pixels(ev["x_adv_W"], facts), tolerance)
    if method.admm is not None:
        deployed = method.validated()
        with mode(deployed, training=False):
            yield Check("eval logits of Z", rel(deployed(x).detach(), ev["logits_Z"]), tolerance)
        total = sum(w.square().sum() for w in method.compressed().values())
        apart = method.admm.report()["distance_w_z"] * total.double()
        yield Check("distance of W and Z", rel(apart.detach(), ev["W_Z_sq_distance"]), tolerance)


def steps(path: Path) -> list[Check]:
    """Each batch from the recorded state before it: attack, loss, gradients, optimiser, projection, update of Z and U; then evaluation."""
    file, meta = Folder.load(path)
    checks = []
    for run, facts in meta.items():
        if not isinstance(facts, dict):
            continue
        part = file.at(run)
        tolerance = 1e-10 if part["x"].dtype == torch.float64 else 2e-5
        method = _method(part, facts)
        for i in range(facts["batches"]):
            if i > 0:
                _force(method, part.at(f"b{i - 1}"))
            checks += [
                check._replace(quantity=f"{run} {check.quantity}", note=f"batch {i} {check.note}")
                for check in _step(method, part, facts, i, tolerance)
            ]
        _force(method, part.at(f"b{facts['batches'] - 1}"))
        checks += [check._replace(quantity=f"{run} {check.quantity}") for check in _final(method, part, facts, tolerance)]
    return checks
