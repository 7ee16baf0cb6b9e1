"""FlyingBird on the small network of its recordings: training steps, and a chain of updates of FlyingBird+ under imposed gradients."""

from __future__ import annotations

from math import inf

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from baselines import flyingbird
from tests.golden.check import Check, rel
from tests.golden.small_nets import Arrays, attacked_as, batch_of, differ, largest, replayed, started_at

EXACT = 0.0


class Chain(nn.Module):
    """Convolutions with batch norms in a row, the last one strided, then the mean over the map and a linear layer."""

    def __init__(self, shapes: dict[str, torch.Size]):
        super().__init__()
        names = [name for name in shapes if name != "linear.weight"]
        self.depth = len(names)
        for i, name in enumerate(names, 1):
            c_out, c_in, kernel, _ = shapes[name]
            self.add_module(f"conv{i}", nn.Conv2d(c_in, c_out, kernel, 2 if i == self.depth else 1, kernel // 2, bias=False))
            self.add_module(f"bn{i}", nn.BatchNorm2d(c_out))
        self.linear = nn.Linear(*reversed(shapes["linear.weight"]))

    def forward(self, x: Tensor) -> Tensor:
        for i in range(1, self.depth + 1):
            x = F.relu(self.get_submodule(f"bn{i}")(self.get_submodule(f"conv{i}")(x)))
        return self.linear(x.mean((2, 3)))

    def convs(self) -> list[tuple[str, nn.Module]]:
        return [(name, self.get_submodule(name)) for name in (*(f"conv{i}" for i in range(1, self.depth + 1)), "linear")]


class Birds:
    """FlyingBird on the recorded network; its random growth takes the draws in `chances`."""

    def __init__(self, weights: dict[str, Tensor], spec: dict, *, per_epoch: int, batch: int):
        net = Chain({name: weight.shape for name, weight in weights.items()}).to(next(iter(weights.values())).dtype)
        spec = {**flyingbird.RECIPE["run"], "method": "flyingbird", "dataset": "cifar10", "seed": 0, "eps": 0, **spec}
        spec["train"] = {**spec["train"], "batch": batch, "optimizer": "sgd"}
        self.chances: dict[str, Tensor] = {}
        uniform = {"uniform": lambda _, layer, draws: self.chances[f"{layer}.weight"]}
        self.method = replayed(flyingbird.FlyingBird, net, spec, per_epoch * batch, **uniform)
        self.makers = {f"{name}.weight": maker for name, maker in self.method.realisation.makers.items()}

    def load(self, weights: dict[str, Tensor], masks: dict[str, Tensor], momenta: dict[str, Tensor]) -> None:
        """Weights (of all trained tensors and statistics that are given), masks, momenta."""
        with torch.no_grad():
            for name, maker in self.makers.items():
                maker.weight.copy_(weights[name])
                maker.mask.copy_(masks[name])
            self.method.net.load_state_dict({k: v for k, v in weights.items() if k not in self.makers}, strict=False)
        for name, parameter in self.parameters().items():
            self.method.optimizer.state[parameter].clear()  # SGD's buffer starts at the first gradient
            if name in momenta:
                self.method.optimizer.state[parameter]["momentum_buffer"] = momenta[name].clone()
        self.method.push()

    def take(self, arrays: Arrays, at: str) -> None:
        """The recorded draws of an update, if there is one; layers without any draw have nothing to grow."""
        drawn = arrays.under(f"{at}uniform_draw/")
        self.chances = {name: drawn.get(name, torch.zeros(maker.mask.shape)) for name, maker in self.makers.items()}

    def parameters(self) -> dict[str, nn.Parameter]:
        """Everything that is trained, by its recorded name."""
        own = {name: p for name, p in self.method.net.named_parameters() if name not in self.makers}
        return own | {name: maker.weight for name, maker in self.makers.items()}

    def momentum(self, name: str) -> Tensor:
        return self.method.optimizer.state[self.parameters()[name]]["momentum_buffer"]

    def masks_apart(self, recorded: dict[str, Tensor]) -> float:
        return sum(differ(maker.mask, recorded[name]) for name, maker in self.makers.items())


def plus_chain(arrays: Arrays, run: str) -> list[Check]:
    """FlyingBird+ under imposed gradients and an imposed series of validation results; the method goes on from each recorded update."""
    meta, checks, series = arrays.meta[run], [], arrays.under("fbp_series/")
    options = {
        **flyingbird.RECIPE["run"]["options"],
        **{"plus": True, "growth": meta["growth"], "plus_start": meta["start_epoch"], "plus_window": meta["window_differences"]},
        **{"plus_threshold": meta["threshold"], "update_every": [meta["update_every"]] * 2},
    }
    train = {name: meta[name] for name in ("lr", "momentum", "weight_decay", "epochs")}
    weights = arrays.under(f"{run}/init/weight/")
    birds = Birds(weights, {"options": options, "train": train}, per_epoch=meta["its_per_epoch"], batch=1)
    method, gradients, updates = birds.method, arrays.under(f"{run}/grad/"), iter(meta["updates"])
    birds.load(arrays.under(f"{run}/init/all_param/"), arrays.under(f"{run}/init/mask/"), {})
    for step in range(1, meta["T"] + 1):
        epoch = (step - 1) // meta["its_per_epoch"]
        for name, parameter in birds.parameters().items():
            parameter.grad = gradients[name][step - 1].clone()
        method.optimizer.step()
        is_update = step % meta["update_every"] == 0
        if is_update:
            update = next(updates)
            birds.take(arrays, f"{run}/u{update['update']}/")
            note = f"{run} update {update['update']}"
            decision = method.decision(epoch)
            rate = flyingbird.death_rate(step, meta["T"], *options["death_rate"])
            checks.append(Check("chain: step and epoch", differ([step, epoch], [update["iteration"], update["epoch"]]), EXACT, note))
            checks.append(Check("chain: death rate", abs(rate - update["death_rate"]), 1e-9, note))
            checks.append(Check("chain: decisions", differ(list(decision), [update["extra_prune"], update["extra_growth"]]), EXACT, note))
        method.after_step(step, torch.Generator())
        if is_update:
            after = arrays.under(f"{run}/u{update['update']}/after/")
            recorded = {kind: {name: after[f"{kind}/{name}"] for name in weights} for kind in ("weight", "mask", "momentum")}
            active = [int(maker.mask.sum()) for maker in birds.makers.values()]
            checks.append(Check("chain: masks", birds.masks_apart(recorded["mask"]), EXACT, note))
            checks.append(Check("chain: active counts", differ(active, update["active_after"]), EXACT, note))
            for name, maker in birds.makers.items():
                checks.append(Check("chain: weights", rel(maker.weight.detach(), recorded["weight"][name]), 1e-5, note))
                checks.append(Check("chain: momenta", rel(birds.momentum(name), recorded["momentum"][name]), 1e-5, note))
            birds.load(recorded["weight"], recorded["mask"], recorded["momentum"])
        if step % meta["its_per_epoch"] == 0:
            train_acc, val_acc, val_loss = (series[name][epoch].item() for name in ("train_acc", "val_acc", "val_loss"))
            method.after_epoch({"train_acc": train_acc, "val_robust": val_acc, "val_loss": val_loss})
    return checks


def trainee(arrays: Arrays, run: str) -> Birds:
    """FlyingBird with the settings of a recorded training."""
    meta, recipe = arrays.meta[run], flyingbird.RECIPE["run"]
    spec = {
        "eps": repr(meta["eps"]),
        "attack": {**recipe["attack"], "steps": meta["attack_steps"], "step": meta["step"] / meta["eps"]},
        "options": {
            **recipe["options"],
            **{"growth": meta["growth"], "update_every": [meta["first_frequency"], meta["second_frequency"]]},
        },
        "train": {name: meta[name] for name in ("lr", "momentum", "weight_decay", "epochs")},
    }
    layers = {name: arrays[f"{run}/init/{name}"] for name in meta["layers"]}
    return Birds(layers, spec, per_epoch=meta["its_per_epoch"], batch=arrays[f"{run}/x"].shape[1])


def bird_steps(arrays: Arrays, run: str) -> list[Check]:
    """Whole training steps, each from the recorded state: attack, loss, gradients, optimiser, mask and topology."""
    checks, tolerance, birds = [], 1e-10, trainee(arrays, run)
    method, x, y = birds.method, arrays[f"{run}/x"], arrays[f"{run}/y"]
    weights, masks, momenta = arrays.under(f"{run}/init/"), arrays.under(f"{run}/init_mask/"), {}
    for t in range(arrays.meta[run]["T"]):
        at, batch = f"{run}/t{t}/", batch_of(x[t], y[t])
        birds.load(weights, masks, momenta)
        birds.take(arrays, at)
        method.net.train()
        with started_at(method, arrays[f"{at}start_delta"]):
            _, adv = method.adversarial(batch, torch.Generator())
        checks.append(Check("adversarial images, absolute", largest(adv - arrays[f"{at}x_adv"]), tolerance, at))
        method.optimizer.zero_grad(set_to_none=True)
        with attacked_as(method, arrays[f"{at}x_adv"]):
            loss, _ = method.loss(batch, torch.Generator())
        loss.backward()
        method.pull()
        for name, parameter in birds.parameters().items():
            checks.append(Check("gradients", rel(parameter.grad, arrays[f"{at}grad/{name}"]), tolerance, f"{at}{name}"))
        method.optimizer.step()
        for maker in birds.makers.values():
            maker.hold(method.optimizer)
        for name, parameter in birds.parameters().items():
            recorded = arrays[f"{at}after_step/{name}"]
            checks.append(Check("weights after the optimiser", rel(parameter.detach(), recorded), tolerance, f"{at}{name}"))
        method.after_step(t + 1, torch.Generator())
        masks = arrays.under(f"{at}mask_after_update/") or masks
        weights, momenta = arrays.under(f"{at}state/"), arrays.under(f"{at}momentum/")
        checks.append(Check("masks", birds.masks_apart(masks), EXACT, at))
        for name, parameter in birds.parameters().items():
            checks.append(Check("weights after the step", rel(parameter.detach(), weights[name]), tolerance, f"{at}{name}"))
            checks.append(Check("momenta after the step", rel(birds.momentum(name), momenta[name]), tolerance, f"{at}{name}"))
        for name, buffer in method.net.named_buffers():
            checks.append(Check("running statistics", rel(buffer, weights[name]), tolerance, f"{at}{name}"))
    birds.load(weights, masks, momenta)
    method.net.eval()
    checks.append(Check("logits in eval mode", rel(method.net(x[0]).detach(), arrays[f"{run}/eval_logits"]), tolerance, run))
    return checks + free_steps(arrays, run)


def free_steps(arrays: Arrays, run: str) -> list[Check]:
    """The same steps in a row, left to themselves; reported, not judged."""
    checks, birds = [], trainee(arrays, run)
    method = birds.method
    birds.load(arrays.under(f"{run}/init/"), arrays.under(f"{run}/init_mask/"), {})
    method.net.train()
    for t in range(arrays.meta[run]["T"]):
        at = f"{run}/t{t}/"
        birds.take(arrays, at)
        method.optimizer.zero_grad(set_to_none=True)
        with started_at(method, arrays[f"{at}start_delta"]):
            loss, _ = method.loss(batch_of(arrays[f"{run}/x"][t], arrays[f"{run}/y"][t]), torch.Generator())
        loss.backward()
        method.pull()
        method.optimizer.step()
        method.after_step(t + 1, torch.Generator())
        method.push()
        for name, maker in birds.makers.items():
            checks.append(Check("free: weights", rel(maker.weight.detach(), arrays[f"{at}state/{name}"]), inf, f"{at}{name}"))
    return checks
