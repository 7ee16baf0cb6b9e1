"""The commands: the number does not depend on how the work is cut or interrupted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest
import torch

from methods.core import eval_spec
from methods.core.revision import ROOT
from methods.evaluate import main
from methods.evaluation import block, runner
from methods.networks.model_file import load_model
from methods.train import main as train
from tests.methods.evaluation.commands import merged, shard
from tests.methods.evaluation.nets import ATTACK, SPEC, images
from tests.specs import small, text

pytestmark = pytest.mark.usefixtures("run")


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
