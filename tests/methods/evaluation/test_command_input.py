"""Bad input of the commands is one line, exit code 2, no file."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from methods.core import sealed
from methods.evaluate import main
from tests.methods.evaluation.commands import EVALUATION, refused, shard
from tests.methods.evaluation.nets import ATTACK, SPEC

pytestmark = pytest.mark.usefixtures("run")


def test_weights_of_others_go_through_a_function_that_builds_the_network(tmp_path, monkeypatch, capsys):
    (tmp_path / "theirs.py").write_text(
        "from torch import nn\n\n\ndef net():\n    return nn.Sequential(nn.Flatten(), nn.Linear(3072, 10))\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    weights = tmp_path / "w.pt"
    torch.save({"1.weight": torch.zeros(10, 3072), "1.bias": torch.arange(10.0)}, weights)
    arguments = [str(weights), "--dataset", "cifar10", "--source", "sample", "--attack", "clean", "--net", "theirs:net", "--out"]
    assert main(["file", *arguments, str(tmp_path / "r.json")]) == 0
    # The network always says class 9: the share of trucks among the first 1000 test images.
    assert json.loads((tmp_path / "r.json").read_text())["n_clean"] == 109
    for content, message in (
        ({"1.weight": torch.zeros(10, 3072)}, "misses 1 tensor(s): 1.bias"),
        ({"1.weight": torch.zeros(10, 99), "1.bias": torch.zeros(10)}, "'1.weight' has shape (10, 99)"),
        ({"1.weight": torch.full((10, 3072), torch.nan), "1.bias": torch.zeros(10)}, "'1.weight' holds NaN"),
        ([1, 2], "holds no state dict of tensors"),
    ):
        torch.save(content, weights)
        refused(["file", *arguments, str(tmp_path / "bad.json")], message, tmp_path / "bad.json", capsys)
    weights.write_bytes(weights.read_bytes()[:50])
    refused(["file", *arguments, str(tmp_path / "bad.json")], "not a complete file of torch.save", tmp_path / "bad.json", capsys)


def test_examples_are_ascii_digits(run, capsys, tmp_path):
    out = tmp_path / "out.json"
    for wrong in ("１０", "²", "-1", "1e3", "9" * 30):
        arguments = ["file", str(run / "model.safetensors"), "--dataset", "cifar10", f"--examples={wrong}", "--out", str(out)]
        refused(arguments, f"--examples {wrong}: a number or all", out, capsys)
    deep = ["file", str(run / "model.safetensors"), "--dataset", "cifar10", "--attack", '{"a":' * 100_000, "--out", str(out)]
    refused(deep, "--attack: not JSON (nested too deeply)", out, capsys)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ("truncated", "not a complete safetensors file"),
        ("missing", "misses 1 tensor(s): head.weight"),
        ("extra", "surplus 1 tensor(s): more.weight"),
        ("shape", "'head.weight' has shape"),
        ("nan", "'stem.weight' holds NaN"),
        ("other", "not the file that train.json describes"),
    ],
)
def test_damaged_model_files(damage, message, run, tmp_path, capsys):
    folder = tmp_path / "run"
    folder.mkdir()
    path = folder / "model.safetensors"
    tensors = load_file(run / "model.safetensors")
    with safe_open(run / "model.safetensors", framework="pt") as file:
        metadata = file.metadata()
    if damage == "missing":
        del tensors["head.weight"]
    elif damage == "extra":
        tensors["more.weight"] = torch.zeros(3)
    elif damage == "shape":
        tensors["head.weight"] = tensors["head.weight"][:, :-1].contiguous()
    elif damage == "nan":
        tensors["stem.weight"][0, 0, 0, 0] = torch.nan
    elif damage == "other":
        tensors["stem.weight"] *= 2
    save_file(tensors, path, metadata)
    if damage == "truncated":
        path.write_bytes(path.read_bytes()[:-100])
    manifest = sealed.read(run / "train.json")
    sealed.write(folder / "train.json", manifest if damage == "other" else {**manifest, "model_sha256": sealed.file_hash(path)})
    out = tmp_path / "out.json"
    refused(shard(folder, 1, 1, out), message, out, capsys)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"attack": "strong"}, "attack: 'strong' is not allowed; allowed: standard, clean, custom, pgd, or an object"),
        ({"attack": 3}, "attack: 3 is not allowed; allowed: standard, clean, custom, pgd, or an object"),
        ({"attack": {"version": "strong"}}, "attack.version: 'strong' is not allowed; allowed: standard, clean, custom, pgd"),
        ({"attack": {"version": "custom", "attacks": ["pgd"]}}, "allowed: apgd-ce, apgd-dlr, apgd-t, fab, fab-t, square"),
        ({"attack": {"version": "custom", "attack": []}}, "attack: unknown key 'attack'; allowed: apgd_iter, attacks"),
        ({"attack": {"version": "custom", "attacks": []}}, "attack.attacks: [] is not allowed; allowed: a list"),
        ({"attack": {"version": "custom", "attacks": {}}}, "attack.attacks: {} is not allowed; allowed: a list"),
        ({"attack": {"version": "custom", "attacks": ["fab", "fab"]}}, "attack: 'attacks' names one of them twice"),
        ({"attack": {"version": "standard", "steps": 3}}, "attack: unknown key 'steps'; allowed: version"),
        ({"attack": {"version": "custom", "apgd_iter": 0}}, "attack.apgd_iter: 0 is not allowed; allowed: a whole number, at least 1"),
        ({"attack": {"version": "pgd", "step": 0}}, "attack.step: 0 is not allowed; allowed: a positive fraction of eps"),
        ({"attack": {**ATTACK, "targets": 10}}, "attack.targets: 10 of apgd-t are too many, the network has 10 classes"),
        ({"attack": "custom"}, "needs its settings"),
        ({"epsilon": "8/255"}, "unknown key 'epsilon'; allowed: attack, block, eps, examples, norm, seed"),
        ({"eps": "8/0"}, "eps: '8/0' is not allowed; allowed: a number or a fraction"),
        ({"eps": -1}, "eps: -1 is not allowed"),
        ({"eps": True}, "eps: True is not allowed"),
        ({"eps": 0}, "leaves nothing to attack"),
        ({"eps": 1e999}, "eps: inf is not allowed"),
        ({"norm": "L1"}, "norm: 'L1' is not allowed; allowed: Linf, L2"),
        ({"norm": "L2", "attack": "pgd"}, "norm: L2 is not known to the pgd attack"),
        ({"examples": 0}, "examples: 0 is not allowed; allowed: a whole number, at least 1"),
        ({"examples": 1001}, "the test set has 1000 images"),
        ({"block": 2.5}, "block: 2.5 is not allowed; allowed: a whole number, at least 1"),
        ({"seed": -1}, "seed: -1 is not allowed; allowed: a whole number, at least 0"),
    ],
)
def test_bad_evaluations(change, message, run, tmp_path, capsys):
    out = tmp_path / "out.json"
    refused(shard(run, 1, 1, out, json.dumps({**SPEC, "examples": 20} | change)), message, out, capsys)


@pytest.mark.parametrize("text", ["0/2", "3/2", "1/0", "2", "-1/2", "1/2/3", "1/99999999999", "１/２", "1/²"])
def test_shard_out_of_range(text, run, tmp_path, capsys):
    out = tmp_path / "out.json"
    refused(["run", "--run", str(run), "--spec", EVALUATION, f"--shard={text}", "--out", str(out)], f"--shard {text}", out, capsys)


def test_not_json_and_no_run(run, tmp_path, capsys):
    out = tmp_path / "out.json"
    refused(shard(run, 1, 1, out, "{attack"), "the evaluation spec is not JSON", out, capsys)
    refused(shard(run, 1, 1, out, "[" * 100_000), "the evaluation spec is not JSON (nested too deeply)", out, capsys)
    refused(shard(run, 1, 1, out, '{"attack":' * 100_000), "the evaluation spec is not JSON (nested too deeply)", out, capsys)
    refused(shard(run, 1, 1, out, "[1]"), "evaluation: [1] is not allowed; allowed: a mapping of attack, block, eps", out, capsys)
    refused(shard(tmp_path / "none", 1, 1, out), "train.json: no such file", out, capsys)
    sealed.write(tmp_path / "train.json", {"spec": {"dataset": "cifar10"}})
    refused(shard(tmp_path, 1, 1, out), "train.json: the key 'spec.data' is missing", out, capsys)
    (tmp_path / "train.json").write_text((tmp_path / "train.json").read_text().replace("cifar10", "cifar100"))
    refused(shard(tmp_path, 1, 1, out), "train.json: is damaged, its contents do not have the SHA-256", out, capsys)
    blocked = tmp_path / "train.json" / "out.json"
    refused(["merge", "--out", str(blocked), str(tmp_path / "absent.json")], "absent.json: no such file", blocked, capsys)
    assert main(shard(run, 1, 1, tmp_path / "one.json", '{"attack": "clean", "examples": 10}')) == 0
    refused(["merge", "--out", str(blocked), str(tmp_path / "one.json")], "train.json", blocked, capsys)


def test_help_shows_how_to_use_it(capsys):
    for arguments in (["--help"], ["run", "--help"], ["file", "--help"]):
        with pytest.raises(SystemExit) as leave:
            main(arguments)
        assert leave.value.code == 0
    text = capsys.readouterr().out
    assert "python -m methods.evaluate file" in text
    assert '"standard"' in text
    assert "apgd_iter" in text
