"""Real runs of Snakemake: one that nothing happens to, and those that something happens to."""

import contextlib
import os
import signal

import pytest

from tests.cluster import tree
from tests.cluster.faults.results import PATIENCE, ROWS, TABLE, jobs


@pytest.fixture(scope="session")
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


@pytest.fixture(scope="session")
def undisturbed(checkout, tmp_path_factory):
    """The folder of a run that nothing happened to."""
    folder = tmp_path_factory.mktemp("undisturbed")
    log = folder.with_name("log")
    targets = [TABLE, *ROWS.values()]
    assert tree.snakemake("--cores", "2", *targets, "--directory", str(folder), tree=checkout, log=log).wait(PATIENCE) == 0, log.read_text()
    return folder
