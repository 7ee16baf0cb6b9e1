"""Networks that others trained, evaluated by the same pipeline; nothing is trained here.

`options.source: robustbench` is any model of RobustBench's zoo (Croce et al., NeurIPS 2021 Datasets and Benchmarks), by its name there;
`options.path` is the folder of its downloads. `options.source: official` is a checkpoint of the paper's authors (`options.path`:
model_best.pth of their code), so that the paper's own rows can be checked without training.

An official file holds frozen weights and trained scores but not the sparsity: `sparsity` and `p` of the run must be those it was trained
with, and `arch`, `lbn`, `bn_affine` those it was built with. All are checked against the file's tensors as far as they show there, and no
tensor is ignored. The width is read from the file: a scale's reduced width does not change a network that exists already.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from methods.core.allocation import adaptive_counts
from methods.core.architectures import ARCHS
from methods.core.errors import UserError
from methods.data.load import Data
from methods.networks.foreign import Foreign, pretrained
from methods.networks.model_file import fill
from methods.networks.resnet import Net, build
from methods.networks.torch_file import read_state
from methods.pruning.makers import Scored, Signed
from methods.training.method import Method
from methods.training.network import weight_report

RECIPE = {
    "version": 2,
    "name": "Zoo",
    "cites": "Croce et al., NeurIPS 2021 (RobustBench); Liu et al., NeurIPS 2022 (released checkpoints)",
    "run": {
        # From arch to head_bias: what an official file is checked against. A RobustBench network brings its own.
        "arch": "rn34",
        "lbn": False,
        "bn_affine": True,
        "normalize": True,
        "head_bias": False,
        "precision": "fp",
        "attack": {"name": "none"},
        "validate": {"steps": 10, "step": 0.25},
        # Of these only the batch is used, for validation: every run has the others.
        "train": {"optimizer": "sgd", "lr": 0.1, "momentum": 0.9, "weight_decay": 0.0, "schedule": "cosine", "epochs": 1, "batch": 256},
        "options": {"source": "robustbench", "model": "Engstrom2019Robustness", "threat": "Linf", "path": "data/robustbench"},
    },
    "when": [
        # The paper's own network; for a baseline's checkpoint a table says otherwise.
        [
            {"options.source": "official"},
            {
                "lbn": True,
                "bn_affine": False,
                "precision": "binary",
                "sparsity": 0.99,
                "p": 0.1,
                "options": {"model": None, "threat": None, "path": "data/official/model_best.pth"},
            },
        ],
    ],
}

SHORTCUTS = ("shortcut", "downsample")  # the official names in the CIFAR and in the ImageNet network
LAST_NORM = "last"  # the official name of the last batch norm


class Zoo(Method):
    """A network as it is."""

    def build_network(self, data: Data) -> Net | Foreign:
        source, path = self.options["source"], Path(self.options["path"]).expanduser()
        if source == "robustbench":
            net = pretrained(self.options["model"], self.spec["dataset"], self.options["threat"], path)
        elif source == "official":
            net = official(path, self.spec, data)
        else:
            raise UserError(f"unknown 'options.source: {source}'; allowed: robustbench, official")
        return net.requires_grad_(False)

    def initialise(self) -> None:
        """The weights are there."""

    def declared_counts(self, sizes: list[int]) -> None:
        """A network of others is as it is; what an official file declares was checked when it was read."""

    def report(self) -> dict[str, Any]:
        if isinstance(self.net, Foreign):
            weights = [p for p in self.net.parameters() if p.ndim > 1]
            counts = {"weights": sum(w.numel() for w in weights), "nonzero": sum(int(w.count_nonzero()) for w in weights)}
            return counts | self.net.arguments
        digest = hashlib.sha256(Path(self.options["path"]).expanduser().read_bytes()).hexdigest()
        return weight_report(self.net) | {"file_sha256": digest, "width": self.net.arguments["width"]}


def official(path: Path, spec: dict, data: Data) -> Net:
    """Our network for a checkpoint of the official code, with its effective weights."""
    state = strip(read_state(path, absent="set 'options.path' to a checkpoint of the official code"), path, data)
    if spec["arch"] not in ARCHS:
        raise UserError(f"unknown architecture 'arch: {spec['arch']}'; allowed: {', '.join(ARCHS)}")
    if "conv1.weight" not in state:
        raise UserError(f"{path}: has no tensor 'conv1.weight'; not a network of the official code (it has {', '.join(sorted(state)[:3])})")
    stem = state["conv1.weight"]
    net = build(
        spec["arch"],
        classes=data.classes,
        stem="imagenet" if stem.shape[-1] == 7 else "cifar",
        width=stem.shape[0] / ARCHS[spec["arch"]].channels[0],
        lbn=spec["lbn"],
        bn_affine=spec["bn_affine"],
        head_bias=spec["head_bias"],
        mean=data.mean if spec["normalize"] else None,
        std=data.std if spec["normalize"] else None,
    )
    fill(net, translate(net, state, spec, path), str(path))
    for name, conv in net.convs():
        if spec["precision"] == "binary" and conv.weight[conv.weight != 0].abs().unique().numel() > 1:
            raise UserError(f"{path}: the weights of '{name}' have several magnitudes; the run says 'precision: binary'")
    return net


def strip(state: dict[str, Tensor], path: Path, data: Data) -> dict[str, Tensor]:
    """Names without what wraps the network: DataParallel's 'module.', and the pair of normalisation '0.' and network '1.'."""
    plain = {re.sub(r"^(module\.)+", "", name): t for name, t in state.items()}
    for name in [name for name in plain if name.startswith("0.")]:
        constants = plain.pop(name).flatten()  # the official code does not save them; a file that does must agree with us
        if not any(constants.numel() == 3 and torch.allclose(constants, torch.tensor(ours), atol=1e-4) for ours in (data.mean, data.std)):
            raise UserError(f"{path}: '{name}' = {constants.tolist()[:4]} is neither the mean nor the standard deviation of {data.name}")
    return {name.removeprefix("1."): t for name, t in plain.items()}


def names(net: Net, state: dict[str, Tensor]) -> dict[str, str]:
    """Our layer name -> the official one."""
    official_names = {"stem": "conv1", "stem_norm": "bn1", "head": "fc"}
    stage, place = 1, -1
    for b, block in enumerate(net.blocks):
        starts = b > 0 and any(conv.stride != (1, 1) for conv in block.convs)  # all stages but the first begin with a stride
        stage, place = (stage + 1, 0) if starts else (stage, place + 1)
        theirs, ours = f"layer{stage}.{place}", f"blocks.{b}"
        for i in range(len(block.convs)):
            official_names |= {f"{ours}.convs.{i}": f"{theirs}.conv{i + 1}", f"{ours}.norms.{i}": f"{theirs}.bn{i + 1}"}
        if block.projection is not None:
            kind = next((kind for kind in SHORTCUTS if f"{theirs}.{kind}.0.weight" in state), SHORTCUTS[0])
            official_names |= {f"{ours}.projection": f"{theirs}.{kind}.0", f"{ours}.projection_norm": f"{theirs}.{kind}.1"}
    if net.last_norm is not None:
        official_names["last_norm"] = LAST_NORM
    return official_names


def translate(net: Net, state: dict[str, Tensor], spec: dict, path: Path) -> dict[str, Tensor]:
    """Our tensors from the official ones: masks and signs applied. Every tensor of the file is used."""
    theirs, left = names(net, state), dict(state)

    def take(name: str) -> Tensor:
        if name not in left:
            raise UserError(f"{path}: misses tensor '{name}'; check 'arch', 'lbn' and 'bn_affine' of the run, and 'head_bias'")
        return left.pop(name)

    ours = {"mean": net.mean, "std": net.std}
    convs = dict(net.convs())
    counts = dict.fromkeys(convs)
    if any(name.endswith(".scores") for name in state):
        if "sparsity" not in spec or "p" not in spec:
            raise UserError(f"{path}: holds scores, so the run must say 'sparsity' and 'p' that it was trained with")
        counts = dict(zip(convs, adaptive_counts([c.weight.numel() for c in convs.values()], spec["sparsity"], spec["p"]), strict=True))
    for name, tensor in net.state_dict().items():
        layer, _, leaf = name.rpartition(".")
        if layer not in theirs:
            continue
        official_name = f"{theirs[layer]}.{leaf}"
        ours[name] = take(official_name)
        if ours[name].shape != tensor.shape:
            raise UserError(f"{path}: '{official_name}' has shape {tuple(ours[name].shape)}, the run's network {tuple(tensor.shape)}")
        if layer in convs and leaf == "weight":
            ours[name] = effective(ours[name], left, theirs[layer], counts[layer])
    if left:
        raise UserError(
            f"{path}: has {len(left)} tensor(s) that the run does not explain: {', '.join(sorted(left)[:4])}; "
            f"check 'arch', 'lbn' ('{LAST_NORM}.*' is the last batch norm), 'bn_affine' and 'head_bias' of the run"
        )
    return ours


def effective(weight: Tensor, left: dict[str, Tensor], layer: str, kept: int | None) -> Tensor:
    """The weight that the official layer convolves with: masked by its scores, or the sign of a BinaryConnect latent, or as it is."""
    scores, signs = left.pop(f"{layer}.scores", None), left.pop(f"{layer}.binweight", None)
    if scores is not None and scores.shape != weight.shape:
        raise UserError(f"'{layer}.scores' has shape {tuple(scores.shape)}, its weight {tuple(weight.shape)}; the file is damaged")
    with torch.no_grad():
        if scores is not None:
            return Scored(weight, scores, kept, train="none")()
        if signs is not None:
            return Signed(weight.clone())()
    return weight


METHOD = Zoo
