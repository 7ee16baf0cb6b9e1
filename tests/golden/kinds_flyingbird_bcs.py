"""Recordings of FlyingBird (initial budgets, topology updates, decisions, training steps) and of BCS (training steps, initial budgets).

Steps are repeated by the suite's own methods on the small networks of the recordings: each starts from the recorded state, and the recorded
random draws stand in for the method's own.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from baselines import flyingbird
from methods.core import allocation
from methods.pruning import topology
from tests.golden.bcs_replay import Sampler, sampler_steps, start_checks
from tests.golden.check import Check, rel
from tests.golden.flyingbird_steps import bird_steps, plus_chain
from tests.golden.small_nets import Arrays, differ, doubles, largest

EXACT = 0.0


def flyingbird_init(path: Path) -> list[Check]:
    return budgets(json.loads(path.read_text())) if path.suffix == ".json" else first_masks(Arrays(path))


def budgets(networks: dict[str, Any]) -> list[Check]:
    checks = []
    for name, network in networks.items():
        shapes = [layer["shape"] for layer in network["layers"]]
        sizes = [layer["n"] for layer in network["layers"]]
        for keep, recorded in network["igq"].items():
            note = f"{name} {keep}"
            fractions = doubles(allocation.igq_fractions(sizes, float(keep)))
            kept = allocation.start_counts(shapes, float(keep), "igq")
            checks.append(Check("igq: pruned fractions", rel(1 - fractions, doubles(recorded["sparsity"])), 1e-9, note))
            checks.append(Check("igq: kept counts", differ(kept, recorded["kept"]), EXACT, note))
            checks.append(Check("igq: kept in total", abs(sum(kept) - recorded["kept_total"]), EXACT, note))
        for keep, recorded in network["fixed_erk"].items():
            fractions = doubles(allocation.erk_fractions(shapes, float(keep)))
            checks.append(Check("erk: densities", rel(fractions, doubles(recorded["density"])), 1e-9, f"{name} {keep}"))
    return checks


def first_masks(arrays: Arrays) -> list[Check]:
    """Budgets of a small network, and weights under the mask that the recorded draw gives."""
    checks = []
    for keep, recorded in arrays.meta.items():
        layers, weights = recorded["masked_layers"], arrays.under(f"d{keep}/weight_in/")
        sizes = [weights[name].numel() for name in layers]
        fractions = doubles(allocation.igq_fractions(sizes, float(keep)))
        counts = allocation.start_counts([weights[name].shape for name in layers], float(keep), "igq")
        checks.append(Check("igq: pruned fractions", rel(1 - fractions, doubles(recorded["igq_sparsity"])), 1e-9, keep))
        checks.append(Check("igq: kept counts", differ(counts, recorded["kept"]), EXACT, keep))
        for name, count in zip(layers, counts, strict=True):
            zeroed = arrays[f"d{keep}/zeroed_index_draw/{name}"]
            mask = torch.ones(weights[name].numel(), dtype=torch.bool).index_fill_(0, zeroed, False).view(weights[name].shape)
            made = topology.Masked(weights[name], mask)().detach()
            checks.append(Check("initial masks: active", abs(int(mask.sum()) - count), EXACT, name))
            checks.append(Check("initial masks", differ(mask, arrays[f"d{keep}/mask/{name}"]), EXACT, name))
            checks.append(Check("masked weights", differ(made, arrays[f"d{keep}/weight_out/{name}"]), EXACT, name))
    return checks


def flyingbird_update(path: Path) -> list[Check]:
    arrays = Arrays(path)
    single = [name for name in arrays.meta if name.split("_")[0] in flyingbird.GROWTHS]
    chains = [name for name in arrays.meta if name.startswith("fbp_")]
    checks = [check for name in single for check in single_update(arrays, name)]
    checks += schedules(arrays) + decisions(arrays.meta["decision_table"])
    return checks + [check for name in chains for check in plus_chain(arrays, name)]


def single_update(arrays: Arrays, case: str) -> list[Check]:
    """One update of every layer by its maker, with a real optimiser's momentum."""
    meta, checks = arrays.meta[case], []
    plus = {"prune": meta["prune_ratio"] * meta.get("dst_prune", False), "growth": meta["growth_ratio"] * meta.get("dst_growth", False)}
    if "loss_history" in meta:
        gaps = [train - val for train, val in meta["train_val_history"]]
        options = flyingbird.RECIPE["run"]["options"]
        series = {"window": options["plus_window"], "threshold": options["plus_threshold"]}
        decision = flyingbird.decide(gaps, meta["loss_history"], epoch=0, start=0, **series)
        checks.append(Check("decisions of an update", differ(list(decision), [meta["dst_prune"], meta["dst_growth"]]), EXACT, case))
    for layer in meta["layers"]:
        note, before = f"{case} {layer}", f"{case}/before"
        maker = topology.Masked(arrays[f"{before}/weight/{layer}"], arrays[f"{before}/mask/{layer}"].bool())
        maker.weight.grad = arrays[f"{before}/grad/{layer}"]
        memory = torch.optim.SGD(maker.parameters(), lr=0.1, momentum=0.9)
        memory.state[maker.weight]["momentum_buffer"] = arrays[f"{before}/momentum/{layer}"].clone()
        rate = meta["death_rate"][layer]
        alive, wanted = topology.survivors(maker.weight.detach(), maker.mask, rate, plus["prune"])
        u = arrays[f"{case}/uniform_draw/{layer}"] if f"{case}/uniform_draw/{layer}" in arrays else torch.zeros(maker.mask.shape)
        maker.update(rate, **plus, u=u if meta["growth"] == "random" else None)
        maker.hold(memory)
        after = {"weight": maker.weight.detach(), "mask": maker.mask, "momentum": memory.state[maker.weight]["momentum_buffer"]}
        checks.append(Check("update: survivors", differ(alive, arrays[f"{case}/after_death/mask/{layer}"]), EXACT, note))
        checks.append(Check("update: regrowth target", abs(wanted - meta["regrow_target_G"][layer]), EXACT, note))
        for name, ours in after.items():
            checks.append(Check(f"update: {name} after", differ(ours, arrays[f"{case}/after/{name}/{layer}"]), EXACT, note))
    return checks


def schedules(arrays: Arrays) -> list[Check]:
    meta = arrays.meta["schedule"]
    ends = meta["start"], meta["end"]
    total = int(arrays["schedule/small_T"])
    small = [flyingbird.death_rate(t, total, *ends) for t in range(len(arrays["schedule/small"]))]
    big = [flyingbird.death_rate(100 * t, meta["T"], *ends) for t in range(len(arrays["schedule/big_every_100"]))]
    at_updates = [flyingbird.death_rate(t, meta["T"], *ends) for t in arrays["schedule/update_iteration"].tolist()]
    checks = [
        Check(f"death rate, {name}", largest(doubles(ours) - arrays[f"schedule/{key}"]), 1e-9)
        for name, ours, key in (
            ("small", small, "small"),
            ("every 100", big, "big_every_100"),
            ("at updates", at_updates, "update_death_rate"),
        )
    ]
    cases = {"": meta | {"dynamic_frequency": True}} | {f"{name}_": case for name, case in meta["small"].items()}
    for prefix, case in cases.items():
        per_epoch, epochs, first = case["its_per_epoch"], case["epochs"], case["first_frequency"]
        every = [first, case["second_frequency"] if case["dynamic_frequency"] else first]
        steps = range(1, per_epoch * epochs + 1)
        ours = [step for step in steps if flyingbird.is_update(step, per_epoch=per_epoch, epochs=epochs, every=every)]
        checks.append(Check("steps of the updates", differ(ours, arrays[f"schedule/{prefix}update_iteration"]), EXACT, prefix))
        epoch = [(step - 1) // per_epoch for step in ours]
        checks.append(Check("epochs of the updates", differ(epoch, arrays[f"schedule/{prefix}update_epoch"]), EXACT, prefix))
    return checks


def decisions(table: list[dict[str, Any]]) -> list[Check]:
    checks = []
    for i, case in enumerate(table):
        gaps = [train - val for train, val in zip(case["train_acc"], case["val_acc"], strict=True)]
        window, limits = case["window_differences"], {"epoch": case["epoch"], "start": case["start_epoch"], "threshold": case["threshold"]}
        shares = flyingbird.share(gaps, window, or_equal=False), flyingbird.share(case["val_loss"], window, or_equal=True)
        recorded = case["prune_fraction"], case["growth_fraction"]
        wrong = sum((a is None) != (b is None) or (a or 0) != (b or 0) for a, b in zip(shares, recorded, strict=True))
        decision = flyingbird.decide(gaps, case["val_loss"], window=window, **limits)
        checks.append(Check("decision table: shares", float(wrong), EXACT, f"case {i}"))
        checks.append(
            Check("decision table: decisions", differ(list(decision), [case["extra_prune"], case["extra_growth"]]), EXACT, f"case {i}")
        )
    return checks


def flyingbird_train(path: Path) -> list[Check]:
    arrays = Arrays(path)
    return [check for run in arrays.meta for check in bird_steps(arrays, run)]


def bcs_steps(path: Path) -> list[Check]:
    arrays = Arrays(path)
    runs = [name for name in arrays.meta if name != "initial_densities"]
    checks = [check for run in runs for check in sampler_steps(Sampler(arrays, run))]
    return checks + [check for name, case in arrays.meta["initial_densities"].items() for check in start_checks(name, case)]


KINDS = {
    "flyingbird_init": flyingbird_init,
    "flyingbird_update": flyingbird_update,
    "flyingbird_train": flyingbird_train,
    "bcs_steps": bcs_steps,
}
