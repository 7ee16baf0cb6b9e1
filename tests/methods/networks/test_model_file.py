"""Model files: what is written is read, and what is wrong in one is one clear message."""

from __future__ import annotations

import json
import resource
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from methods.core.errors import UserError
from methods.networks.model_file import load_model, save_model
from methods.networks.resnet import build


@pytest.fixture
def path(tmp_path) -> Path:
    save_model(build("rn18", classes=10, width=0.0625, lbn=True), {"dataset": "cifar10"}, tmp_path / "model.safetensors")
    return tmp_path / "model.safetensors"


def rewrite(path: Path, text: str) -> None:
    save_file(load_file(path), path, {"suite": text})


def described(**changes) -> str:
    network = {"arch": "rn18", "width": 0.0625, "classes": 10, "stem": "cifar", "lbn": True, "bn_affine": False, "head_bias": False}
    return json.dumps({"format": 1, "network": network | changes, "spec": {}})


def test_a_network_comes_back_as_it_was(path):
    net = load_model(path)
    again = path.with_name("again.safetensors")
    save_model(net, {"dataset": "cifar10"}, again)
    assert again.read_bytes() == path.read_bytes()
    assert not net.training


WRONG = {
    "list": ("[1, 2]", "what stands in it about its network is a list, not a mapping"),
    "text": ('"model"', "is a str, not a mapping"),
    "nothing": ("null", "is a NoneType, not a mapping"),
    "not JSON": ("{", "not a complete safetensors file"),
    "deep": ('{"network":' * 100_000, "nested too deeply"),
    "no format": ("{}", "not a model file of this suite (format None, expected 1)"),
    "other format": ('{"format": 2, "network": {}}', "not a model file of this suite (format 2, expected 1)"),
    "no network": ('{"format": 1, "spec": {}}', "the key 'network', which says what to build, is missing"),
    "network is text": ('{"format": 1, "network": "rn18"}', "network: 'rn18' is not allowed; allowed: a mapping of arch, bn_affine"),
    "network is a list": ('{"format": 1, "network": ["robustbench"]}', "network: ['robustbench'] is not allowed"),
    "unknown argument": (described(depth=18), "network: unknown key 'depth'; allowed: arch, bn_affine, classes"),
    "missing argument": ('{"format": 1, "network": {"arch": "rn18"}}', "network: missing key 'classes'"),
    "unknown architecture": (described(arch="vgg"), "network.arch: 'vgg' is not allowed; allowed: rn18"),
    "text for a number": (described(classes="ten"), "network.classes: 'ten' is not allowed; allowed: a whole number, at least 1"),
    "no classes": (described(classes=0), "network.classes: 0 is not allowed"),
    "width": (described(width=-1), "network.width: -1 is not allowed; allowed: a factor on the channel counts in (0, 64]"),
    "stem": (described(stem="mnist"), "network.stem: 'mnist' is not allowed; allowed: cifar, imagenet"),
    "switch": (described(lbn="no"), "network.lbn: 'no' is not allowed; allowed: true or false"),
    "other shape": (described(classes=11), "tensor 'head.weight' has shape"),
    "zoo": ('{"format": 1, "network": {"robustbench": {"model": "X"}}}', "network.robustbench: missing key 'dataset', 'threat'"),
    "zoo is text": ('{"format": 1, "network": {"robustbench": "X"}}', "network.robustbench: 'X' is not allowed"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_one_message(name, path):
    text, message = WRONG[name]
    rewrite(path, text)
    with pytest.raises(UserError) as error:
        load_model(path)
    assert str(error.value).startswith(f"{path}: ")
    assert message in str(error.value)


def test_a_file_that_declares_a_huge_network_allocates_nothing(path):
    """Width 64 has 4096 times the weights of width 1: 180 GB."""
    rewrite(path, described(arch="rn18", width=64))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(UserError, match="the network needs"):
        load_model(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kB


def test_tensors_alone_are_no_model(tmp_path):
    save_file({"weight": torch.ones(2)}, tmp_path / "weights.safetensors")
    with pytest.raises(UserError, match="not a model file of this suite"):
        load_model(tmp_path / "weights.safetensors")
