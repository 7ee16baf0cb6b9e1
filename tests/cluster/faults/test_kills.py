"""Processes are killed, and the same command again ends in the same table."""

import contextlib
import fcntl
import os
import random
import signal
import time

import pytest

from methods.core import paths
from tests.cluster.faults.results import PATIENCE, ROWS, TABLE, assert_same, ended, jobs
from tests.cluster.slurm import wait

pytestmark = pytest.mark.timeout(1800)  # a minute at the most, but of many starts of Snakemake


def training(folder):
    """A Run that has saved its state but is not finished."""
    return next((path.parent.parent.name for path in folder.glob("results/runs/*/state/state.new")), None)


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
