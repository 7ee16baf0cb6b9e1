"""Faults, with the real thing: processes are killed, files damaged, disks filled, and the same command again ends in the same table."""

import contextlib
import fcntl
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from methods.core import paths
from tests.cluster import tree
from tests.cluster.slurm import wait

TABLE = paths.table("tiny", "few", "md")
ROWS = {name: paths.row("tiny", "few", name) for name in ("rst", "hydra")}
pytestmark = pytest.mark.timeout(1800)  # a minute at the most, but of many starts of Snakemake
PATIENCE = 500  # seconds, for what takes ten on a quiet machine


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    return tree.copy(tmp_path_factory.mktemp("checkout") / "suite", shards=2)


@pytest.fixture
def run(checkout, tmp_path, monkeypatch):
    """Snakemake on a folder of results; whatever it leaves running ends with the test."""
    monkeypatch.setenv("SUITE_SAVE_EVERY", "0")
    started, folders = [], []

    def start(folder, *targets):
        folder.mkdir(exist_ok=True)
        log = tmp_path / f"log{len(started)}"
        started.append(tree.snakemake("--cores", "2", *targets, "--directory", str(folder), tree=checkout, log=log))
        folders.append(folder)
        started[-1].log = log
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()
    for folder in folders:
        for pid in jobs(folder):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@pytest.fixture(scope="module")
def undisturbed(checkout, tmp_path_factory):
    """The folder of a run that nothing happened to."""
    folder = tmp_path_factory.mktemp("undisturbed")
    log = folder.with_name("log")
    targets = [TABLE, *ROWS.values()]
    assert tree.snakemake("--cores", "2", *targets, "--directory", str(folder), tree=checkout, log=log).wait(PATIENCE) == 0, log.read_text()
    return folder


def jobs(folder):
    """Processes that train or evaluate in a folder."""
    numbers = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            ours = process.cmdline()[1:4] in (["-m", "methods.warm", name] for name in ("methods.train", "methods.evaluate"))
            if ours and Path(process.cwd()) == folder.resolve():
                numbers.append(process.pid)
    return numbers


def training(folder):
    """A Run that has saved its state but is not finished."""
    return next((path.parent.parent.name for path in folder.glob("results/runs/*/state/state.new")), None)


def ended(process, code=0):
    assert process.wait(PATIENCE) == code, process.log.read_text()
    return process.log.read_text()


def assert_same(folder, undisturbed, *targets):
    """The same numbers as the undisturbed run: table, networks, histories, and the answer for every image."""
    for target in targets:
        assert (folder / target).read_bytes() == (undisturbed / target).read_bytes()
    runs = sorted(path.name for path in (folder / "results/runs").iterdir())
    for name in runs:
        for file in (paths.model(name), paths.history(name)):
            assert (folder / file).read_bytes() == (undisturbed / file).read_bytes(), file
        for path in (undisturbed / paths.run_folder(name)).glob("eval/*.json"):
            mine = folder / path.relative_to(undisturbed)
            assert json.loads(mine.read_text())["broken_by"] == json.loads(path.read_text())["broken_by"], mine
        assert not (folder / paths.state_folder(name)).exists()
    assert len(runs) == (4 if TABLE in targets else 1 if ROWS["rst"] in targets else 3)


def test_a_job_is_killed(run, undisturbed, tmp_path):
    for attempt in range(10):  # the training that was seen may be over before it is hit
        work = tmp_path / f"work{attempt}"
        first = run(work, TABLE)
        wait(lambda work=work: training(work), "a training that has saved its state", seconds=PATIENCE, pause=0.01)
        wait(lambda work=work: [os.kill(pid, signal.SIGKILL) for pid in jobs(work)], "a job", seconds=PATIENCE, pause=0.01)
        assert "FAILED: " in ended(first, 1)
        if victim := training(work):
            break
    ended(run(work, TABLE))
    assert "resumed at epoch" in (work / paths.log("train", victim)).read_text()
    assert_same(work, undisturbed, TABLE)


def test_snakemake_is_killed_and_its_jobs_live_on(run, undisturbed, tmp_path):
    """A second one waits for the orphans, or takes what they have finished."""
    work = tmp_path / "work"
    first = run(work, TABLE)
    wait(lambda: training(work), "a training that has saved its state", seconds=PATIENCE, pause=0.01)
    first.kill()
    first.wait()
    assert any((work / ".snakemake/locks").iterdir()), "left by the dead"
    ended(run(work, TABLE))
    assert_same(work, undisturbed, TABLE)


@contextlib.contextmanager
def held_up(work, name):
    """Let the training of a Run wait until the block ends."""
    state = work / paths.state_folder(name)
    state.mkdir(parents=True)
    with (state / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def waits(work, name):
    log = work / paths.log("train", name)
    wait(lambda: log.exists() and "waiting for it" in log.read_text(), "a training that waits", seconds=PATIENCE)


def test_what_an_orphan_finished_is_kept(run, undisturbed, tmp_path):
    work, (name,) = tmp_path / "work", (path.name for path in (undisturbed / "results/runs").glob("rst-*"))
    with held_up(work, name):
        first = run(work, ROWS["rst"])
        waits(work, name)
        first.kill()
        first.wait()
    wait(lambda: not jobs(work), "the end of the orphan", seconds=PATIENCE)
    manifest = work / paths.train_manifest(name)
    made = manifest.stat().st_ino
    output = ended(run(work, ROWS["rst"]))
    assert f"{paths.train_manifest(name)}: was finished though its Snakemake was killed; kept" in output
    assert manifest.stat().st_ino == made
    assert_same(work, undisturbed, ROWS["rst"])


def test_two_at_once(run, undisturbed, tmp_path):
    work, (name,) = tmp_path / "work", (path.name for path in (undisturbed / "results/runs").glob("rst-*"))
    ended(run(work, paths.data_manifest("cifar10", "sample")))
    with held_up(work, name):
        first = run(work, ROWS["rst"])
        waits(work, name)
        assert "cannot be locked" in ended(run(work, ROWS["rst"]), 1), "the same is refused"
        ended(run(work, ROWS["hydra"]))
        assert first.poll() is None
    ended(first)
    ended(run(work, TABLE))
    assert_same(work, undisturbed, TABLE, *ROWS.values())


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("kind", ["manifest", "history", "model", "evaluation", "shard", "handover"])
def test_a_damaged_file_is_named_and_made_again(run, undisturbed, tmp_path, kind):
    work = tmp_path / "work"
    shutil.copytree(undisturbed, work)
    (rst,) = (path for path in (work / "results/runs").glob("rst-*"))
    (dense,) = (path.parent for path in work.glob("results/runs/hydra-pretrain-*/handover.safetensors"))
    (merged,) = rst.glob("eval/*.json")
    if kind == "model":  # about to be used
        merged.unlink()
    if kind == "handover":
        next(work.glob("results/runs/hydra-prune-*/train.json")).unlink()
    path = {
        "manifest": rst / "train.json",
        "history": rst / "history.jsonl",
        "model": rst / "model.safetensors",
        "evaluation": merged,
        "shard": merged.with_suffix("") / "2-of-2.json",
        "handover": dense / "handover.safetensors",
    }[kind]
    flip(path)
    bad = path.read_bytes()
    output = ended(run(work, TABLE))
    assert f"{path.relative_to(work)}: is damaged" in output
    assert path.read_bytes() != bad
    assert_same(work, undisturbed, TABLE)


def test_a_dry_run_names_damage_and_touches_nothing(run, undisturbed, tmp_path):
    work = tmp_path / "work"
    shutil.copytree(undisturbed, work)
    (path,) = work.glob("results/runs/rst-*/train.json")
    flip(path)
    before = contents(work / "results"), contents(work / "reports")
    assert f"{path.relative_to(work)}: is damaged" in ended(run(work, "-n", TABLE))
    assert (contents(work / "results"), contents(work / "reports")) == before
    assert not any((work / ".snakemake/incomplete").iterdir())


def test_a_run_folder_evaluates_elsewhere(undisturbed, tmp_path):
    """Copied alone, with another copy of the code, from another working directory."""
    (source,) = (undisturbed / "results/runs").glob("rst-*")
    folder, code = tmp_path / "received", tmp_path / "code"
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns("eval"))
    shutil.copytree(tree.ROOT / "methods", code / "methods", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(tree.ROOT / "baselines", code / "baselines", ignore=shutil.ignore_patterns("__pycache__"))
    (there,) = source.glob("eval/*.json")
    before = json.loads(there.read_text())
    environ = {**os.environ, "PYTHONPATH": str(code), "OMP_NUM_THREADS": "1", "SUITE_DEVICE": "cpu"}
    command = [sys.executable, "-m", "methods.evaluate"]
    one = ["run", "--run", str(folder), "--spec", json.dumps(before["spec"]), "--out", "shard.json"]
    for words in (one, ["merge", "--out", "merged.json", "shard.json"]):
        done = subprocess.run([*command, *words], cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0, done.stderr
    after = json.loads((tmp_path / "merged.json").read_text())
    assert {key: after[key] for key in ("broken_by", "model", "data")} == {key: before[key] for key in ("broken_by", "model", "data")}


@pytest.fixture
def small_disk(tmp_path):
    """A file system of its own, of 24 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.getuid():
        pytest.skip("a disk that can be filled needs root (mount -t tmpfs)")
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(folder)], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"a disk that can be filled cannot be mounted here: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(folder, *, leave):
    """Take all room but `leave` bytes."""
    ballast = folder / "ballast"
    with ballast.open("wb") as stream, contextlib.suppress(OSError):
        while True:
            stream.write(bytes(2**16))
            stream.flush()
    os.truncate(ballast, ballast.stat().st_size - leave)
    return ballast


@pytest.mark.parametrize("leave", [0, 2**19])
def test_a_full_disk(run, undisturbed, small_disk, leave):
    """Nothing left: Snakemake itself cannot start. A little: a job fails."""
    ended(run(small_disk, ROWS["rst"]))
    before = contents(small_disk / "results")
    ballast = fill(small_disk, leave=leave)
    failed = run(small_disk, TABLE)
    output = ended(failed, 1)
    assert f"The disk of {small_disk}" in output
    assert "make room and run the same command again" in output
    assert before.items() <= contents(small_disk / "results").items()
    ballast.unlink()
    ended(run(small_disk, TABLE))
    assert before.items() <= contents(small_disk / "results").items(), "what was finished is not made again"
    assert_same(small_disk, undisturbed, TABLE, ROWS["rst"])


def test_twenty_random_kills(run, undisturbed, tmp_path):
    """Of jobs and of Snakemake, at random moments. A table that is finished in spite of them is held against the other, and begun again."""
    draws, kills, rounds = random.Random(20), 0, 0
    while kills < 20:
        work, rounds = tmp_path / f"work{rounds}", rounds + 1
        while True:
            process = run(work, TABLE)
            if kills == 20:
                ended(process)
                break
            chosen, delay = draws.choice(["job", "job", "snakemake"]), draws.uniform(0, 0.8)
            wait(lambda process=process, work=work: process.poll() is not None or jobs(work), "a job", seconds=PATIENCE, pause=0.01)
            time.sleep(delay)
            victims = jobs(work) if chosen == "job" else [process.pid]
            if process.poll() is None and victims:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(draws.choice(sorted(victims)), signal.SIGKILL)
                    kills += 1
            if process.wait(PATIENCE) == 0:
                break
            assert process.returncode in (1, -signal.SIGKILL), process.log.read_text()
        assert_same(work, undisturbed, TABLE)
