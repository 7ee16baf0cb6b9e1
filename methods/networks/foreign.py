"""Networks of RobustBench's model zoo, as networks of the suite.

A model file of such a network holds its weights and its name in the zoo; RobustBench builds the architecture again from the name, so that
evaluating the file needs no download.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import pickle
import sys
import warnings
from pathlib import Path
from types import ModuleType

from torch import Tensor, nn

from methods.core.errors import UserError
from methods.data.torchvision_shim import torchvision
from methods.networks.torch_file import reason


class Foreign(nn.Module):
    """A network that is not ours: it maps images in [0, 1] to logits; `arguments` tell how to build it again."""

    def __init__(self, model: nn.Module, arguments: dict[str, dict[str, str]]):
        super().__init__()
        self.model = model
        self.arguments = arguments

    def forward(self, x: Tensor) -> Tensor:
        return self.model(x)

    def convs(self) -> list[tuple[str, nn.Conv2d]]:
        return [(name, module) for name, module in self.named_modules() if isinstance(module, nn.Conv2d)]


def robustbench() -> ModuleType:
    """robustbench.utils. The package imports AutoAttack by its first name; here it is installed as pyautoattack, the same code."""
    torchvision()
    if "autoattack" not in sys.modules and importlib.util.find_spec("autoattack") is None:
        sys.modules["autoattack"] = importlib.import_module("pyautoattack")
        sys.modules["autoattack.state"] = importlib.import_module("pyautoattack.state")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="pkg_resources is deprecated")  # of its own loaders; nothing a user could do
        return importlib.import_module("robustbench.utils")


def architecture(model: str, dataset: str, threat: str) -> Foreign:
    """The network of that name in the zoo, with weights as they come."""
    zoo = robustbench()
    entry = _entry(zoo, model, dataset, threat)
    if entry is None:
        built = zoo.timm.create_model(_timm_name(model, dataset, threat), num_classes=_classes(zoo, dataset), pretrained=False)
    else:
        built = entry["model"]()
    return Foreign(built.eval(), {"robustbench": {"model": model, "dataset": dataset, "threat": threat}})


def pretrained(model: str, dataset: str, threat: str, folder: Path) -> Foreign:
    """The network of that name with its published weights, read from the folder or downloaded into it."""
    zoo = robustbench()
    _entry(zoo, model, dataset, threat)
    try:
        loaded = zoo.load_model(model, model_dir=folder, dataset=dataset, threat_model=threat)
    except Exception as error:  # a download, an unpickling or a state dict can fail in every library's own way
        where = folder / dataset / threat / f"{model}.pt"
        loading = isinstance(error, pickle.UnpicklingError | EOFError) or "weights_only" in str(error)
        why = reason(error) if loading else f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
        raise UserError(
            f"RobustBench model '{model}' could not be loaded; its weights are read from {where} and downloaded there when absent ({why})"
        ) from error
    return Foreign(loaded.eval(), {"robustbench": {"model": model, "dataset": dataset, "threat": threat}})


def _entry(zoo: ModuleType, model: str, dataset: str, threat: str) -> dict | None:
    """The zoo's record of a model; None for one that timm registers. An unknown name is an error with the nearest ones."""
    threats = {kind.value: kind for kind in zoo.ThreatModel}
    datasets = {kind.value: kind for kind in zoo.BenchmarkDataset}
    if dataset not in datasets or threat not in threats or threats[threat] not in zoo.all_models[datasets[dataset]]:
        known = [f"{d.value}/{t.value}" for d, models in zoo.all_models.items() for t in models]
        raise UserError(f"RobustBench has no models for {dataset} under '{threat}'; it has: {', '.join(known)}")
    if zoo.timm.is_model(_timm_name(model, dataset, threat)):
        return None
    models = zoo.all_models[datasets[dataset]][threats[threat]]
    if model not in models:
        near = difflib.get_close_matches(model, models, n=5, cutoff=0.3) or sorted(models)[:5]
        raise UserError(f"RobustBench has no model '{model}' for {dataset}/{threat}; near names: {', '.join(near)}")
    return models[model]


def _timm_name(model: str, dataset: str, threat: str) -> str:
    return f"{model.lower().replace('-', '_')}_{dataset}_{threat.lower()}"


def _classes(zoo: ModuleType, dataset: str) -> int:
    return zoo.DATASET_CLASSES[zoo.BenchmarkDataset(dataset)]
