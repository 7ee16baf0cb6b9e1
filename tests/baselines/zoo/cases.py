"""Files in the official layout, written and read by themselves; the command that imports one."""

from __future__ import annotations

import json
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from methods import train
from methods.core.allocation import allocate
from tests.specs import small

CPU = torch.device("cpu")


def official_layers(widths, blocks, *, bottleneck, stem, classes, shortcut="shortcut"):
    """(conv name, shape, stride, its batch norm's name) in the order of definition: stem, blocks with their shortcut last, classifier."""
    kernel = 7 if stem == "imagenet" else 3
    yield "conv1", (widths[0], 3, kernel, kernel), 2 if stem == "imagenet" else 1, "bn1"
    c_in, grow = widths[0], 4 if bottleneck else 1
    for stage, (c, count) in enumerate(zip(widths, blocks, strict=True), 1):
        for i in range(count):
            at, stride = f"layer{stage}.{i}", 2 if stage > 1 and i == 0 else 1
            body = [(c, c_in, 1, 1), (c, c, 3, 3), (c * 4, c, 1, 1)] if bottleneck else [(c, c_in, 3, 3), (c, c, 3, 3)]
            strided = 1 if bottleneck else 0
            for j, shape in enumerate(body):
                yield f"{at}.conv{j + 1}", shape, stride if j == strided else 1, f"{at}.bn{j + 1}"
            if stride != 1 or c_in != c * grow:
                yield f"{at}.{shortcut}.0", (c * grow, c_in, 1, 1), stride, f"{at}.{shortcut}.1"
            c_in = c * grow
    yield "fc", (classes, c_in, 1, 1), 1, None


def write_state(layers, *, kind: str, lbn: bool, affine: bool, seed=0) -> dict[str, Tensor]:
    g = torch.Generator().manual_seed(seed)
    state = {}
    for name, shape, _, norm in layers:
        weight = torch.randn(shape, generator=g)
        if kind == "subnet":
            state[f"{name}.weight"] = weight.sign()
            state[f"{name}.scores"] = torch.rand(shape, generator=g) * 2 - 1
        else:
            state[f"{name}.weight"] = weight * 0.7
            if kind == "binaryconnect":
                state[f"{name}.binweight"] = torch.where(weight >= 0, 1.0, -1.0)
        norm = "last" if norm is None and lbn else norm
        if norm is not None:
            state[f"{norm}.running_mean"] = torch.randn(shape[0], generator=g)
            state[f"{norm}.running_var"] = torch.rand(shape[0], generator=g) * 40 + 10
            state[f"{norm}.num_batches_tracked"] = torch.tensor(7)
            if affine:
                state[f"{norm}.weight"] = torch.rand(shape[0], generator=g) + 0.5
                state[f"{norm}.bias"] = torch.randn(shape[0], generator=g)
    return state


def official_forward(state, layers, x, *, kind, keep, p, bottleneck, stem, mean, std) -> Tensor:
    """The official network as functions of its state dict: masks by sorting, normalisation in front."""
    layers = list(layers)
    table = {name: (stride, norm) for name, _, stride, norm in layers}
    fractions = dict(zip(table, allocate([torch.Size(s).numel() for _, s, _, _ in layers], keep, p), strict=True))

    def conv(name, x):
        weight, stride = state[f"{name}.weight"], table[name][0]
        if kind == "subnet":
            scores = state[f"{name}.scores"].abs().flatten()
            order = scores.argsort()
            mask = torch.ones_like(scores)
            mask[order[: int((1 - fractions[name]) * scores.numel())]] = 0
            weight = weight * mask.view(weight.shape)
        elif kind == "binaryconnect":
            weight = torch.where(weight.clamp(-1, 1) >= 0, 1.0, -1.0)
        return F.conv2d(x, weight, stride=stride, padding=(weight.shape[-1] - 1) // 2)

    def norm(name, x):
        affine = state.get(f"{name}.weight"), state.get(f"{name}.bias")
        return F.batch_norm(x, state[f"{name}.running_mean"], state[f"{name}.running_var"], *affine, eps=1e-5)

    x = (x - torch.tensor(mean).view(1, 3, 1, 1)) / torch.tensor(std).view(1, 3, 1, 1)
    x = F.relu(norm("bn1", conv("conv1", x)))
    if stem == "imagenet":
        x = F.max_pool2d(x, 3, 2, padding=1)
    for at in dict.fromkeys(name.rsplit(".", 1)[0] for name in table if name.startswith("layer") and name.endswith("conv1")):
        out, depth = x, 3 if bottleneck else 2
        for j in range(1, depth + 1):
            out = norm(f"{at}.bn{j}", conv(f"{at}.conv{j}", out))
            out = F.relu(out) if j < depth else out
        short = next((k for k in ("shortcut", "downsample") if f"{at}.{k}.0" in table), None)
        x = F.relu(out + (norm(f"{at}.{short}.1", conv(f"{at}.{short}.0", x)) if short else x))
    x = conv("fc", x.mean((2, 3), keepdim=True))
    return (norm("last", x) if "last.running_mean" in state else x).flatten(1)


class Case:
    def __init__(
        self, arch, widths, blocks, *, bottleneck=False, stem="cifar", kind="subnet", lbn=True, affine=False, prefix="", keep=0.05
    ):
        self.arch, self.kind, self.lbn, self.affine, self.prefix, self.keep, self.p = arch, kind, lbn, affine, prefix, keep, 0.1
        self.stem, self.bottleneck = stem, bottleneck
        short = "downsample" if stem == "imagenet" else "shortcut"
        self.layers = list(official_layers(widths, blocks, bottleneck=bottleneck, stem=stem, classes=10, shortcut=short))
        self.state = write_state(self.layers, kind=kind, lbn=lbn, affine=affine)

    def save(self, folder: Path) -> Path:
        path = folder / "model_best.pth"
        named = {self.prefix + name: t for name, t in self.state.items()}
        torch.save({"epoch": 400, "arch": self.arch, "state_dict": named, "best_valid_acc1": 48.2}, path)
        return path

    def spec(self, path: Path, **changes) -> dict:
        sparse = {"sparsity": 1 - self.keep, "p": self.p} if self.kind == "subnet" else {"sparsity": None, "p": None}
        precision = "fp" if self.kind == "dense" else "binary"
        options = {"source": "official", "path": str(path)}
        keys = {"arch": self.arch, "lbn": self.lbn, "bn_affine": self.affine, "precision": precision, "options": options, **sparse}
        return small("zoo", **keys | changes)

    def forward(self, x: Tensor, data) -> Tensor:
        how = {"kind": self.kind, "keep": self.keep, "p": self.p, "bottleneck": self.bottleneck, "stem": self.stem}
        return official_forward(self.state, self.layers, x, **how, mean=data.mean, std=data.std)


CASES = {
    "ours": lambda: Case("rn18", (8, 16, 32, 64), (2, 2, 2, 2)),
    "ours, two devices": lambda: Case("rn34", (8, 16, 32, 64), (3, 4, 6, 3), prefix="module.1."),
    "ours, bottleneck, imagenet stem": lambda: Case("rn50", (8, 16, 32, 64), (3, 4, 6, 3), bottleneck=True, stem="imagenet", prefix="1."),
    "binaryconnect, small": lambda: Case("small_rn34_p10", (6, 13, 26, 51), (3, 4, 6, 3), kind="binaryconnect", affine=True, prefix="1."),
    "dense, no last norm": lambda: Case("small_rn18_p01", (23, 25, 27, 29), (2, 2, 2, 2), kind="dense", affine=True, lbn=False),
}


def run(spec: dict, out: Path) -> int:
    return train.main(["--spec", json.dumps(spec), "--out", str(out)])
