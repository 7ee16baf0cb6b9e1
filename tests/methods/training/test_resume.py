"""A run that is killed and started again ends with the bytes of an undisturbed run. Real processes, real signals."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from methods.training.resume import Resume
from tests.specs import small, text

RUNS = {
    "pgd": small("binary_subnet", arch="rn18"),
    "atta": small("binary_subnet", arch="rn18", attack={"name": "fgsm_atta"}),
}


def start(spec: dict, out: Path, *words: str, save_every: float = 0.0) -> subprocess.Popen:
    command = [sys.executable, "-m", "methods.train", "--spec", text(spec), "--out", str(out), "--save-every", str(save_every), *words]
    environ = {**os.environ, "OMP_NUM_THREADS": "1", "SUITE_DEVICE": "cpu"}
    return subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finish(spec: dict, out: Path) -> str:
    process = start(spec, out, save_every=1e9)
    output, _ = process.communicate(timeout=240)
    assert process.returncode == 0, output
    return output


def results(out: Path) -> tuple[bytes, str]:
    return (out / "model.safetensors").read_bytes(), (out / "history.jsonl").read_text()


def wait_for_state(process: subprocess.Popen, out: Path, saves: int) -> None:
    """Return when the run has saved its state a number of times."""
    seen, last = 0, None
    while seen < saves:
        assert process.poll() is None, process.stdout.read()
        try:
            now = (out / "state" / "state.new").stat().st_ino
        except FileNotFoundError:
            now = last
        if now != last:
            seen, last = seen + 1, now
        time.sleep(0.002)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> dict[str, tuple[bytes, str]]:
    finished = {}
    for name, spec in RUNS.items():
        out = tmp_path_factory.mktemp(name)
        finish(spec, out)
        assert not (out / "state").exists(), "a finished run leaves no training state"
        finished[name] = results(out)
    return finished


@pytest.mark.parametrize(("name", "saves"), [("pgd", 2), ("atta", 6)])
def test_sigkill(undisturbed, tmp_path, name, saves):
    process = start(RUNS[name], tmp_path)
    wait_for_state(process, tmp_path, saves)
    process.kill()
    process.wait()
    assert not (tmp_path / "train.json").exists()
    assert "resumed at epoch" in finish(RUNS[name], tmp_path)
    assert results(tmp_path) == undisturbed[name]


def test_sigterm_saves_and_says_so(undisturbed, tmp_path):
    process = start(RUNS["pgd"], tmp_path, save_every=1e9)
    while not (tmp_path / "state" / "lock").exists():
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=240)
    assert process.returncode == 75, output
    assert "run the same command again" in output
    assert "resumed at epoch 0, step 1" in finish(RUNS["pgd"], tmp_path)
    assert results(tmp_path) == undisturbed["pgd"]


@pytest.mark.parametrize("damage", ["torn", "flipped", "both"])
def test_damaged_state_falls_back(undisturbed, tmp_path, damage):
    process = start(RUNS["pgd"], tmp_path)
    wait_for_state(process, tmp_path, 3)
    process.kill()
    process.wait()
    new, old = tmp_path / "state" / "state.new", tmp_path / "state" / "state.old"
    content = bytearray(new.read_bytes() if new.exists() else old.read_bytes())
    if damage == "torn":
        content = content[: len(content) // 2]
    else:
        content[len(content) // 2] ^= 1
    new.write_bytes(content)
    if damage == "both":
        old.write_bytes(content)
    output = finish(RUNS["pgd"], tmp_path)
    assert "is damaged; ignored" in output
    assert ("resumed" in output) == (damage != "both")
    assert results(tmp_path) == undisturbed["pgd"]


def test_two_trainers_of_one_run_exclude_each_other(undisturbed, tmp_path):
    """The second waits for the first and takes its result, or says why it does not."""
    first = start(RUNS["pgd"], tmp_path)
    wait_for_state(first, tmp_path, 1)
    first.send_signal(signal.SIGSTOP)  # alive, holding its lock, and sure not to finish meanwhile
    second = start(RUNS["pgd"], tmp_path, "--wait", "0")
    output, _ = second.communicate(timeout=240)
    assert second.returncode == 2
    assert "another process is training this run" in output
    third = start(RUNS["pgd"], tmp_path)
    assert "waiting for it" in third.stdout.readline()
    first.send_signal(signal.SIGCONT)
    assert first.wait(240) == 0
    made = (tmp_path / "train.json").stat().st_ino
    output, _ = third.communicate(timeout=240)
    assert third.returncode == 0
    assert "finished by another process" in output
    assert (tmp_path / "train.json").stat().st_ino == made, "nothing was trained twice"
    assert results(tmp_path) == undisturbed["pgd"]
    assert not (tmp_path / "state").exists()


def test_one_that_waits_for_a_killed_one_goes_on_where_that_was(undisturbed, tmp_path):
    first = start(RUNS["pgd"], tmp_path)
    wait_for_state(first, tmp_path, 2)
    first.send_signal(signal.SIGSTOP)
    second = start(RUNS["pgd"], tmp_path, save_every=1e9)
    assert "waiting for it" in second.stdout.readline()
    first.kill()
    first.wait()
    output, _ = second.communicate(timeout=240)
    assert second.returncode == 0
    assert "resumed at epoch" in output
    assert results(tmp_path) == undisturbed["pgd"]


@pytest.mark.parametrize("damaged", ["handover.safetensors", "train.json"])
def test_a_damaged_parent_is_named_and_not_used(tmp_path, damaged):
    parent = small("hydra", arch="rn18", phase="pretrain")
    child = small("hydra", arch="rn18", phase="prune") | {"parent": "0123456789ab"}
    finish(parent, tmp_path / "at.0123456789ab")
    path = tmp_path / "at.0123456789ab" / damaged
    content = bytearray(path.read_bytes())
    content[-20] ^= 1
    path.write_bytes(content)
    process = start(child, tmp_path / "child")
    output, _ = process.communicate(timeout=240)
    assert process.returncode == 2
    assert f"{damaged}: is damaged" in output
    assert not (tmp_path / "child" / "train.json").exists()


def test_a_state_of_another_spec_or_other_code_is_not_taken_up(tmp_path, capsys):
    first = Resume(tmp_path / "state", "this spec, this code")
    first.save({"epoch": 3})
    assert first.load() == {"epoch": 3}
    other = Resume(tmp_path / "state", "this spec, other code", writes=False)
    assert other.load() is None
    assert "belongs to another version of the code or spec" in capsys.readouterr().out


def test_the_older_of_two_states_is_kept(tmp_path):
    resume = Resume(tmp_path / "state", "key")
    for epoch in (1, 2, 3):
        resume.save({"epoch": epoch})
    new, old = resume.files
    assert resume.load() == {"epoch": 3}
    new.write_bytes(new.read_bytes()[:-1])
    assert resume.load() == {"epoch": 2}
    old.write_bytes(b"")
    assert resume.load() is None
