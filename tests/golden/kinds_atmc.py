"""Repeats of ATMC's parts: the projection, the codebooks, the factorised layer; and of its training steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from methods.networks.resnet import build
from methods.pruning.codebook import fit, fittable
from methods.pruning.factors import Factorised
from methods.pruning.masks import global_mask
from methods.pruning.projection import keep_largest
from tests.golden.atmc_steps import LLOYD, steps
from tests.golden.check import Check, rel
from tests.golden.folders import Folder, unequal


def _projected(tensors: dict[str, Tensor], selected: list[str], kept: int) -> dict[str, Tensor]:
    projected = {name: t.clone() for name, t in tensors.items()}
    keep_largest([projected[name] for name in selected], kept)
    return projected


def projection(path: Path) -> list[Check]:
    """Global projection by count and by ratio, its mask applied to other values, one layer at a time, and ties."""
    file, meta = Folder.load(path)
    checks = []
    for block, facts in meta.items():
        if block == "ties":
            continue
        part, selected = file.at(block), facts["selected_in_order"]
        start = part.dict("in")
        cases = {f"out_k{kept}": kept for kept in facts["keep_counts"]}
        cases |= {f"out_ratio{ratio}": kept for ratio, kept in facts["ratio_to_kept"].items()}
        for name, kept in cases.items():
            ours, recorded = _projected(start, selected, kept), part.dict(name)
            checks.append(Check(f"{block}/{name}", sum(unequal(ours[key], t) for key, t in recorded.items()), 0, "entries"))
        kept = facts["idx_keep"]
        other = part.dict("idx_in")
        masks = global_mask([start[name].abs() for name in selected], kept)
        recorded = part.dict(f"idx_out_k{kept}")
        apart = sum(unequal(other[name] * mask, recorded[name]) for name, mask in zip(selected, masks, strict=True))
        checks.append(Check(f"{block}/idx_out_k{kept}", apart, 0, "entries"))
        ours = start
        for layer, kept in facts["per_layer_keep"].items():
            ours = _projected(ours, [name for name in selected if name.startswith(f"{layer}.")], kept)
        recorded = part.dict("layer_out")
        checks.append(Check(f"{block}/layer_out", sum(unequal(ours[key], t) for key, t in recorded.items()), 0, "entries"))
    ties = _projected({"in": file["ties/in"]}, ["in"], meta["ties"]["keep"])["in"]
    checks.append(Check("ties/count", abs(int(ties.count_nonzero()) - meta["ties"]["kept_nonzero"]), 0))
    checks.append(Check("ties/magnitude", abs(ties.abs().sum().item() - meta["ties"]["abs_sum_out"]), 1e-5))
    return checks


def quantize(path: Path) -> list[Check]:
    """Codebooks from recorded seeds: whether a tensor is fitted, every iteration's centres, assignments, values."""
    file, meta = Folder.load(path)
    checks = []
    for case, facts in meta.items():
        part, levels = file.at(case), 2 ** facts["bits"]
        weight, values = part["W"], part["Z_in"]
        checks.append(Check(f"{case}/fitted", float(fittable(weight, levels) == facts["skipped"]), 0))
        if facts["skipped"]:
            checks.append(Check(f"{case}/left alone", unequal(values, part["Z_out"]), 0, "entries"))
            continue
        seeds, track = part["seed_flat_index"], part["centre_trajectory"]
        book = fit(values, seeds, **LLOYD)
        checks.append(Check(f"{case}/seeds", unequal(values.reshape(-1)[seeds], part["init_centres"][:levels]), 0, "entries"))
        checks.append(Check(f"{case}/iterations", abs(book.iterations - facts["iterations"]), 0))
        checks.append(Check(f"{case}/assign", unequal(book.assignment, part["assign"]), 0, "entries"))
        for done in range(1, len(track)):
            early = fit(values, seeds, iterations=done, tolerance=LLOYD["tolerance"])
            checks.append(Check(f"{case}/centres {done}", (early.centres - track[done]).abs().max().item(), 1e-6))
            if done == 1 and "assign_first" in part:
                checks.append(Check(f"{case}/assign_first", unequal(early.assignment, part["assign_first"]), 0, "entries"))
        checks.append(Check(f"{case}/centres", (book.centres - part["centres"]).abs().max().item(), 1e-6))
        checks.append(Check(f"{case}/Z", (book.values(values) - part["Z_out"]).abs().max().item(), 1e-6))
    return checks


def _apply(weight: Tensor, x: Tensor, bias: Tensor | None, facts: dict) -> Tensor:
    if facts["kind"] == "lin":
        return F.linear(x, weight.flatten(1), bias)
    return F.conv2d(x, weight, bias, stride=facts["stride"], padding=facts["padding"])


def _factorised(part: Folder, facts: dict, tolerance: float, label: str) -> Iterator[Check]:
    start = part["start_dense"]
    maker = Factorised(start)
    tall = facts["form"].startswith("B(A")
    yield Check(f"{label}/form", float(maker.tall != tall or maker.a.shape[0] != facts["rank"]), 0)
    named = {"A": maker.a, "B": maker.b, "C": maker.c}
    yield Check(f"{label}/start factors", sum(unequal(t, part[f"start_{n}"].reshape(t.shape)) for n, t in named.items()), 0, "entries")
    yield Check(f"{label}/start weight", unequal(maker().reshape(start.shape), part["start_W_eff"]), 0, "entries")
    bias = part.get("start_bias")
    yield Check(f"{label}/start output", rel(_apply(maker(), part["x"], bias, facts).detach(), part["start_y"]), tolerance)
    with torch.no_grad():
        for name, tensor in named.items():
            tensor.copy_(part[name].reshape(tensor.shape))
    x = part["x"].requires_grad_()
    bias = part["bias"].requires_grad_() if "bias" in part else None
    weight = maker()
    weight.retain_grad()
    y = _apply(weight, x, bias, facts)
    y.backward(part["gy"])
    ours = {"W_eff": weight, "y": y, "gx": x.grad, "gW_eff": weight.grad, **{f"g{name}": t.grad for name, t in named.items()}}
    if bias is not None:
        ours["gbias"] = bias.grad
    for name, tensor in ours.items():
        yield Check(f"{label}/{name}", rel(tensor.detach().reshape(part[name].shape), part[name]), tolerance)


def factorised_layer(path: Path) -> list[Check]:
    """Both forms: weight, output, all gradients, start from a dense layer; and the factor shapes of a whole network."""
    file, meta = Folder.load(path)
    checks = []
    for kind, tolerance in (("f32", 2e-6), ("f64", 1e-12)):
        for case, facts in meta.items():
            if case != "official_net":
                checks += _factorised(file.at(kind).at(case), facts, tolerance, f"{kind}/{case}")
    whole = meta["official_net"]
    shapes = [row[1:4] for row in whole["layers_name_A_B_C_rank"]]
    net = build(whole["name"].lower().replace("resnet", "rn"), classes=shapes[-1][2][0], head_bias=True)
    ours = [Factorised(conv.weight.detach()) for _, conv in net.convs()]
    sizes = [[p.numel() for p in maker.parameters()] for maker in ours]
    recorded = [[int(np.prod(shape)) for shape in row] for row in shapes]
    checks.append(Check("official_net/factors", float(sizes != recorded), 0))
    checks.append(Check("official_net/ranks", float([maker.a.shape[0] for maker in ours] != whole["ranks"]), 0))
    checks.append(Check("official_net/stored", abs(sum(map(sum, sizes)) - whole["n_abc"]), 0))
    checks.append(Check("official_net/dense", abs(sum(conv.weight.numel() for _, conv in net.convs()) - whole["n_dense"]), 0))
    return checks


KINDS: dict[str, Callable[[Path], list[Check]]] = {
    "atmc_projection": projection,
    "atmc_quantize": quantize,
    "atmc_factorised_layer": factorised_layer,
    "atmc_steps": steps,
    "atmc_steps_f32": steps,
}
