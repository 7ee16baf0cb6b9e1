"""The commands: the number does not depend on how the work is cut or interrupted; bad input is one line, exit code 2, no file."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from methods.core import eval_result, eval_spec, sealed
from methods.core.errors import UserError
from methods.evaluate import evaluate, main
from methods.evaluation import block, runner
from methods.evaluation.robustbench_export import model_info
from methods.networks.model_file import load_model
from methods.train import main as train
from tests.methods.evaluation.nets import ATTACK, SPEC, images, one_thread, run_folder, trained
from tests.specs import small, text

ROOT = Path(__file__).resolve().parents[3]
EVALUATION = json.dumps({**SPEC, "examples": 90, "block": 20})  # five blocks, the last one short


@pytest.fixture(autouse=True, scope="module")
def run(tmp_path_factory) -> Iterator[Path]:
    with one_thread():
        yield run_folder(tmp_path_factory.mktemp("runs") / "small.0123456789ab")


def shard(run: Path, k: int, n: int, out: Path, spec: str = EVALUATION) -> list[str]:
    return ["run", "--run", str(run), "--spec", spec, "--shard", f"{k}/{n}", "--out", str(out)]


def merged(out: Path, *shards: Path) -> dict:
    assert main(["merge", "--out", str(out), *map(str, shards)]) == 0
    value = sealed.read(out)
    assert value.pop("seconds") > 0
    assert value.pop("sha256")
    return value


def process(arguments: list[str]) -> subprocess.Popen:
    environment = {**os.environ, "OMP_NUM_THREADS": str(torch.get_num_threads()), "SUITE_DEVICE": "cpu"}
    return subprocess.Popen([sys.executable, "-m", "methods.evaluate", *arguments], cwd=ROOT, env=environment)


@pytest.fixture(scope="module")
def whole(run, tmp_path_factory) -> dict:
    folder = tmp_path_factory.mktemp("whole")
    assert main(shard(run, 1, 1, folder / "1.json")) == 0
    return merged(folder / "merged.json", folder / "1.json")


def test_one_shard_has_every_kind_of_answer(whole, run):
    assert whole["n"] == 90 == len(whole["broken_by"]["examples"])
    assert set("012") <= set(whole["broken_by"]["examples"])
    assert whole["n_robust"] == whole["broken_by"]["examples"].count("0")
    assert whole["data"].startswith("CIFAR-10 sample")
    assert whole["model"] == json.loads((run / "train.json").read_text())["model_sha256"]


@pytest.mark.parametrize("n", [3, 7])
def test_number_of_shards_does_not_matter(n, run, whole, tmp_path):
    """Seven shards for five blocks: two of them have nothing to do, and say so."""
    files = [tmp_path / f"{k}.json" for k in range(1, n + 1)]
    for k, file in enumerate(files, 1):
        assert main(shard(run, k, n, file)) == 0
    assert merged(tmp_path / "merged.json", *reversed(files)) == whole
    assert not (tmp_path / "blocks").exists()


def test_processes_at_the_same_time_do_not_matter(run, whole, tmp_path):
    files = [tmp_path / f"{k}.json" for k in (1, 2)]
    running = [process(shard(run, k, 2, file)) for k, file in enumerate(files, 1)]
    assert [one.wait(300) for one in running] == [0, 0]
    assert merged(tmp_path / "merged.json", *files) == whole


def test_killed_and_started_again_does_not_matter(run, whole, tmp_path, monkeypatch):
    """Killed without warning once some work is on disk: nothing looks finished, and the second start does only what is left."""
    out, work = tmp_path / "1.json", tmp_path / "blocks"
    victim = process(shard(run, 1, 1, out))
    deadline = time.monotonic() + 300
    while not (work.is_dir() and any(work.glob("block-00001.*"))) and victim.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    victim.send_signal(signal.SIGKILL)
    assert victim.wait(60) == -signal.SIGKILL
    assert not out.exists()
    assert any(work.iterdir())

    blocks = []
    original = block.attack_block
    monkeypatch.setattr("methods.evaluation.runner.attack_block", lambda *a, **k: blocks.append(k["done"]) or original(*a, **k))
    assert main(shard(run, 1, 1, out)) == 0
    assert merged(tmp_path / "merged.json", out) == whole
    assert len(blocks) < 5
    assert not work.exists()


def test_interrupted_between_two_attacks_of_a_block(run, whole, tmp_path, monkeypatch):
    out, done = tmp_path / "1.json", []
    write = block.check_ball

    def interrupt(adversarial, x, spec, name):
        write(adversarial, x, spec, name)
        done.append(name)
        if len(done) == 7:
            raise KeyboardInterrupt

    monkeypatch.setattr(block, "check_ball", interrupt)
    assert main(shard(run, 1, 1, out)) == 75
    interrupted = list(done)
    panel = runner.measure

    def uncounted(*arguments):  # the trust panel has attacks of its own
        monkeypatch.setattr(block, "check_ball", write)
        return panel(*arguments)

    monkeypatch.setattr(runner, "measure", uncounted)
    assert main(shard(run, 1, 1, out)) == 0
    assert merged(tmp_path / "merged.json", out) == whole
    # The attack that was cut off is run again, the six before it are not.
    assert done[7:].count("apgd-ce") + interrupted[:6].count("apgd-ce") == 5


def test_a_damaged_state_of_a_block_is_named_and_computed_again(run, whole, tmp_path, monkeypatch, capsys):
    out, checked, original = tmp_path / "1.json", [], block.check_ball

    def interrupt(*arguments):
        checked.append(original(*arguments))
        if len(checked) == 7:
            raise KeyboardInterrupt

    monkeypatch.setattr(block, "check_ball", interrupt)
    assert main(shard(run, 1, 1, out)) == 75
    path = next((tmp_path / "blocks").glob("block-00000.*"))
    text = path.read_text()
    digits = text[text.index('"examples": "') + 13 :].split('"')[0]
    path.write_text(text.replace(digits, "0" * len(digits)))  # the state of a network that nothing breaks
    assert main(shard(run, 1, 1, out)) == 0
    assert f"{path} is damaged" in capsys.readouterr().err
    assert merged(tmp_path / "merged.json", out) == whole


def test_file_command_evaluates_a_model_file(run, whole, tmp_path, capsys):
    out = tmp_path / "result.json"
    arguments = ["--dataset", "cifar10", "--source", "sample", "--examples", "90", "--block", "20", "--eps", SPEC["eps"], "--seed", "3"]
    assert main(["file", str(run / "model.safetensors"), *arguments, "--attack", json.dumps(ATTACK), "--out", str(out)]) == 0
    value = json.loads(out.read_text())
    assert value["broken_by"] == whole["broken_by"]
    assert f"{whole['clean_acc']:.2%}" in capsys.readouterr().out
    assert sorted(p.name for p in tmp_path.iterdir()) == ["result.json"]


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


def refused(arguments: list[str], message: str, out: Path, capsys) -> None:
    """The command says why in one line, ends with 2 and leaves no file."""
    assert main(arguments) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("error: ")
    assert message in error
    assert not out.exists()


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


def test_merge_refuses_what_does_not_belong_together(run, tmp_path, capsys):
    quick = {"attack": "clean", "eps": 0, "examples": 90, "block": 20}
    files = [tmp_path / f"{k}.json" for k in (1, 2)]
    for k, file in enumerate(files, 1):
        assert main(shard(run, k, 2, file, json.dumps(quick))) == 0
    other = tmp_path / "other.json"
    assert main(shard(run, 2, 2, other, json.dumps({**quick, "seed": 1}))) == 0
    out = tmp_path / "merged.json"
    for shards, message in (
        ([files[0]], "the blocks 1, 3 are in none of the 1 shard files"),
        ([files[0], files[0], files[1]], "block 0 is already in"),
        ([files[0], other], "'spec' is"),
        ([files[0], tmp_path / "absent.json"], "absent.json: no such file"),
        ([files[0], run / "train.json"], "the key 'format' is missing"),
    ):
        refused(["merge", "--out", str(out), *map(str, shards)], message, out, capsys)
    files[1].write_text(files[1].read_text()[:100])
    refused(["merge", "--out", str(out), *map(str, files)], "2.json: is damaged, it cannot be read as JSON", out, capsys)


def test_merge_does_without_torch():
    """It runs hundreds of times in a workflow."""
    code = "import sys; from methods.evaluate import main; print(main(['merge', '--out', 'x', 'absent']), 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.split() == ["2", "False"]


def test_the_form_of_a_spec_is_kept():
    """A spec is written as it was read: results that exist are compared with it as text."""
    texts = (
        '{"attack":"standard","block":250,"eps":"8/255","examples":"all","norm":"Linf","seed":0}',
        '{"attack":"clean","block":250,"eps":0,"examples":3,"norm":"L2","seed":1}',
        '{"attack":{"step":0.1,"steps":10,"version":"pgd"},"block":1,"eps":0.5,"examples":3,"norm":"Linf","seed":1}',
        '{"attack":{"apgd_iter":3,"attacks":["fab","square"],"fab_iter":100,"restarts":1,"square_queries":5000,"targets":9,'
        '"version":"custom"},"block":1,"eps":0.5,"examples":3,"norm":"L2","seed":1}',
    )
    for line in texts:
        assert eval_spec.parse(line).canonical() == line
    assert eval_spec.parse({}).canonical() == texts[0]
    assert eval_spec.parse({"attack": {"attacks": ["fab"]}}).attack == eval_spec.Custom(attacks=("fab",))
    assert eval_spec.parse({"attack": {"version": "pgd", "steps": 10}}).to_json()["attack"] == "pgd"


def robustbench_fields() -> set[str]:
    """The fields of RobustBench's ModelInfo, read from its source."""
    source = Path(importlib.util.find_spec("robustbench").origin).with_name("utils.py").read_text()
    info = next(n for n in ast.parse(source).body if isinstance(n, ast.ClassDef) and n.name == "ModelInfo")
    return {line.target.id for line in info.body if isinstance(line, ast.AnnAssign)}


def test_export_in_robustbench_form(tmp_path, capsys):
    spec = eval_spec.parse({"attack": "standard"})
    broken = ("none",) * 4506 + ("apgd-ce",) * 3224 + ("clean",) * 2270
    result = eval_result.Result(spec=spec, broken=broken, warnings=({"kind": "zero_gradient"},))
    source, out = tmp_path / "result.json", tmp_path / "info.json"
    sealed.write(source, result.to_json())
    assert main(["export", str(source), "--out", str(out), "--dataset", "cifar10", "--name", "A paper", "--architecture", "ResNet-34"]) == 0
    entry = json.loads(out.read_text())
    assert entry.keys() <= robustbench_fields()
    assert (entry["eps"], entry["clean_acc"], entry["autoattack_acc"]) == ("8/255", "77.30", "45.06")
    assert (entry["dataset"], entry["number_forward_passes"], entry["additional_data"]) == ("cifar10", 1, False)
    assert "zero_gradient" in entry["footnote"]
    assert model_info(result.to_json(), dataset="cifar10", name="", architecture="", reported=45)["reported"] == "45.00"

    few = eval_result.Result(spec=spec, broken=broken[:1000], warnings=())
    quick = eval_result.Result(spec=eval_spec.parse({"attack": "pgd"}), broken=("none",) * 10000, warnings=())
    cases = ((few.to_json(), "all 10000 test images"), (quick.to_json(), "'attack: pgd'"), ({}, "the key 'spec' is missing"))
    arguments = ["--out", str(tmp_path / "no.json"), "--dataset", "cifar10", "--name", "A", "--architecture", "B"]
    for bad, message in cases:
        sealed.write(source, bad)
        refused(["export", str(source), *arguments], message, tmp_path / "no.json", capsys)


def test_help_shows_how_to_use_it(capsys):
    for arguments in (["--help"], ["run", "--help"], ["file", "--help"]):
        with pytest.raises(SystemExit) as leave:
            main(arguments)
        assert leave.value.code == 0
    text = capsys.readouterr().out
    assert "python -m methods.evaluate file" in text
    assert '"standard"' in text
    assert "apgd_iter" in text


def test_nan_logits_bad_labels_and_bad_images(run):
    class Nan(torch.nn.Module):
        def forward(self, x):
            logits = trained()(x).clone()
            logits[3, 2] = torch.nan
            return logits

    x, y = images(20)
    quick = {"attack": "clean", "eps": 0, "block": 10}
    with pytest.raises(UserError, match=r"logits are not finite \(row 3"):
        evaluate(Nan(), x, y, spec=quick)
    for label in (10, -1):
        wrong = y.clone()
        wrong[7] = label
        with pytest.raises(UserError, match=rf"y\[7\] = {label} is out of range: the network has 10 classes"):
            evaluate(trained(), x, wrong, spec=quick)
    shifted = x.clone()
    shifted[15] -= 2
    with pytest.raises(UserError, match=r"x\[15\] has values outside of \[0, 1\]"):
        evaluate(trained(), shifted, y, spec=quick)
    with pytest.raises(UserError, match="one per image"):
        evaluate(trained(), x, y[:5], spec=quick)
    with pytest.raises(UserError, match="must be floats of shape"):
        evaluate(trained(), x[0], y, spec=quick)
    with pytest.raises(UserError, match=r"logits of shape \(10, 512"):
        evaluate(torch.nn.Conv2d(3, 512, 3), x, y, spec=quick)
    with pytest.raises(UserError, match="at most 3 targets"):
        evaluate(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3072, 4)), x, y % 4, spec={"attack": "standard", "block": 10})


def test_a_run_that_the_suite_trained(tmp_path):
    """Trained by `methods.train`, evaluated in shards, merged: the answers of plain calls of the library on the same blocks."""
    folder, parts = tmp_path / "at.0123456789ab", [tmp_path / "1.json", tmp_path / "2.json"]
    spec = small("at", rewrite={"data.train": 480, "train.epochs": 3})
    assert train(["--spec", text(spec), "--out", str(folder)]) == 0
    wanted = eval_spec.parse({**SPEC, "examples": 120, "block": 60})
    for k, part in enumerate(parts, 1):
        assert main(shard(folder, k, 2, part, json.dumps(wanted.to_json()))) == 0
    result = merged(tmp_path / "merged.json", *parts)
    x, y = images(120)
    net = load_model(folder / "model.safetensors")
    for number in (0, 1):
        rows = slice(60 * number, 60 * number + 60)
        plain = block.plain_block(net, x[rows], y[rows], spec=wanted, seed=wanted.block_seed(number))
        assert [digit == "0" for digit in result["broken_by"]["examples"][rows]] == plain.tolist()
    assert set("012") <= set(result["broken_by"]["examples"])
