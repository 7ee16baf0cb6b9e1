"""Finished Runs without training: model files of random sparse networks, manifests, histories, evaluations, in the suite's own formats."""

import hashlib
import json
import math
from pathlib import Path

import torch

from methods.core import paths, sealed
from methods.core.run_spec import identity
from methods.networks.compact.writer import Unfit, encode
from methods.networks.model_file import save_model
from methods.networks.resnet import build
from methods.training.network import weight_report
from workflow.suite.planning.plan import Plan

CLASSES = {"cifar10": 10, "cifar100": 100, "imagenet100": 100}


def network(spec: dict) -> torch.nn.Module:
    """A network of the Run's shape, pruned and binarised at random (signs times one magnitude)."""
    draws = torch.Generator().manual_seed(int(identity(spec), 16) % 2**31)
    net = build(
        spec["arch"],
        classes=CLASSES[spec["dataset"]],
        stem="imagenet" if spec["dataset"] == "imagenet100" else "cifar",
        width=spec.get("width", 1),
        lbn=spec["lbn"],
        bn_affine=spec.get("bn_affine", False),
        head_bias=spec.get("head_bias", False),
    )
    with torch.no_grad():
        for _, conv in net.convs():
            weight = torch.randn(conv.weight.shape, generator=draws)
            if spec.get("precision") == "binary":
                weight = weight.sign()
            if "sparsity" in spec:
                weight = prune(weight, max(0.01, 1 - spec["sparsity"]), draws)
            conv.weight.copy_(weight)
    return net


def shapes(arch: str, width: float = 1.0) -> dict[str, tuple[int, ...]]:
    """Shapes of a network's tensors, by name."""
    return {name: tuple(tensor.shape) for name, tensor in build(arch, classes=10, width=width).state_dict().items()}


def prune(weight: torch.Tensor, keep: float, draws: torch.Generator) -> torch.Tensor:
    """Prune a weight so that some input channels are hit harder than others, as a trained mask does."""
    score = torch.rand(weight.shape, generator=draws) * torch.rand(1, weight.shape[1], 1, 1, generator=draws)
    kept = max(1, round(keep * weight.numel()))
    return weight * (score >= score.flatten().topk(kept).values[-1])


def train(plan: Plan, run: str, folder: Path, *, epochs: int = 3) -> None:
    """What a finished training leaves."""
    spec, place = plan.runs[run].spec, folder / paths.run_folder(run)
    place.mkdir(parents=True, exist_ok=True)
    net = network(spec)
    digest = save_model(net, spec, folder / paths.model(run))
    report = weight_report(net)
    if spec["method"] == "atmc":
        report |= {"stored_entries": 2 * report["weights"], "nonzero_w": report["nonzero"] // 2}
        if spec.get("precision") == "binary":
            report |= {"nonzero_z": report["nonzero"] // 2, "distinct_values_z": [2] * 10}
    best = 0.1 + 0.4 * int(plan.runs[run].id, 16) / 16**12
    lines = []
    for epoch in range(epochs):
        value = best * (1 - math.exp(-4 * (epoch + 1) / epochs)) * (1 + 0.1 * math.sin(epoch))
        record = {"epoch": epoch, "lr": 0.1, "train_loss": 2 - value, "train_acc": 0.9 * value}
        lines.append(json.dumps(record | {"val_clean": min(1, 1.5 * value), "val_robust": value, "val_loss": 2.0}))
    history = "\n".join(lines) + "\n"
    (folder / paths.history(run)).write_text(history)
    manifest = {"model_sha256": digest, "report": report, "spec": spec, "epochs": epochs, "provenance": {"source": "0" * 16}}
    manifest["bytes"] = pack(net, spec, folder / paths.compact(run))
    manifest["history_sha256"] = hashlib.sha256(history.encode()).hexdigest()
    sealed.write(folder / paths.train_manifest(run), manifest)


def repeat_first_epoch(plan: Plan, run: str, folder: Path) -> None:
    """What a repetition of the first epoch leaves: the mask of the end, and others of the same counts."""
    last = {name: conv.weight.detach() != 0 for name, conv in network(plan.runs[run].spec).convs()}
    draws = torch.Generator().manual_seed(0)
    start = {name: mask.flatten()[torch.randperm(mask.numel(), generator=draws)].view_as(mask) for name, mask in last.items()}
    masks = {"start": start, "first": last, "last": last}
    counts = {
        moment: {name: {"inputs": mask.sum((0, 2, 3)).tolist(), "outputs": mask.sum((1, 2, 3)).tolist()} for name, mask in every.items()}
        for moment, every in masks.items()
    }
    both = {key: {name: int((mask & last[name]).sum()) for name, mask in masks[key].items()} for key in ("start", "first")}
    value = {"epochs": 3, "best_epoch": 2, "loss": {"recorded": 2.0, "repeated": 2.0}, "moments": counts, "kept_in_both": both}
    value["gradients"] = {moment: {name: _gradients(mask) for name, mask in every.items()} for moment, every in masks.items()}
    sealed.write(folder / paths.first_epoch(run), value | {"model": sealed.read(folder / paths.train_manifest(run))["model_sha256"]})


def _gradients(mask: torch.Tensor) -> dict[str, int]:
    """Nothing moves the pruned weights of channels that keep nothing."""
    empty = ~mask & ((mask.sum((1, 2, 3), keepdim=True) == 0) | (mask.sum((0, 2, 3), keepdim=True) == 0))
    return {"pruned": int((~mask).sum()), "without": int(empty.sum()), "empty": int(empty.sum()), "empty_without": int(empty.sum())}


def pack(net: torch.nn.Module, spec: dict, path: Path) -> int | None:
    """The compact file, and its size; none of a dense network. (Not read again, as training does: that would take most of the time.)"""
    try:
        return path.write_bytes(encode(net, spec))
    except Unfit:
        return None


def evaluate(plan: Plan, run: str, folder: Path, *, n: int = 64, hits: int | None = None) -> None:
    """What a finished evaluation leaves; the number of images that withstood it follows from the Run's id where none is given."""
    chosen, path = plan.evaluations[run], folder / paths.evaluation(run, plan.evaluations[run].id)
    path.parent.mkdir(parents=True, exist_ok=True)
    robust = 4 + int(plan.runs[run].id, 16) % (n // 2) if hits is None else hits
    clean = min(robust + 8, n)
    # Robust images are right, the next eight are broken by the attack, the others wrong as they are; which images these are is drawn.
    order = torch.randperm(n, generator=torch.Generator().manual_seed(int(plan.runs[run].id, 16) % 2**31)).tolist()
    examples = "".join("0" if place < robust else "2" if place < clean else "1" for place in order)
    result = {"clean_acc": clean / n, "n_clean": clean, "n": n, "data": "Synthetic images", "warnings": [], "after": {}}
    result["broken_by"] = {"codes": ["none", "clean", "apgd-ce"], "examples": examples}
    attacked = {"robust_acc": robust / n, "n_robust": robust} if chosen.spec["attack"] != "clean" else {}
    if (folder / paths.train_manifest(run)).is_file():
        result["model"] = sealed.read(folder / paths.train_manifest(run))["model_sha256"]
    sealed.write(path, result | attacked)


def finish(plan: Plan, runs: list[str], folder: Path, **options: int) -> Path:
    """Train and evaluate these Runs."""
    for run in runs:
        train(plan, run, folder, **options)
        if run in plan.evaluations:
            evaluate(plan, run, folder)
    return folder
