"""A small table through a real SLURM: one training is cancelled, one runs into its time limit, and nothing of that shows in the table."""

import contextlib
import json
import os
import re
import shutil
import signal
import tempfile
from pathlib import Path

import psutil
import pytest

from methods.core import paths
from tests.cluster import slurm, tree
from workflow.suite.planning import plan

TABLE = paths.table("tiny", "few", "md")
pytestmark = pytest.mark.timeout(1800)  # three minutes, but of many starts of Snakemake
QUICK = ["--slurm-init-seconds-before-status-checks", "1", "--max-status-checks-per-second", "5"]  # one user, one machine


@pytest.fixture
def cluster():
    if missing := [tool for tool in slurm.TOOLS if not shutil.which(tool)] or (["root"] if os.getuid() else []):
        message = f"a SLURM of the test's own needs {', '.join(missing)} (Debian, as root: apt-get install slurm-wlm munge)"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    folder = Path(tempfile.mkdtemp(prefix="slurm-"))  # short: names of sockets have a limit
    try:
        with slurm.running(folder) as running:
            yield running
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def checkout(tmp_path):
    """The repository as a user has it who filled in the head of the profile."""
    # It wants GPUs as scale paper does, so that jobs ask SLURM for them, and computes on the CPU all the same.
    folder = tree.copy(tmp_path / "suite", gpu=True, epochs=4)
    profile = folder / "workflow/profiles/slurm/profile.yaml"
    text = profile.read_text().replace("partition: null", f"partition: {slurm.PARTITION}")
    profile.write_text(text.replace("gpu_type: null", f"gpu_type: {slurm.GPU_TYPE}"))
    return folder


def trainer(folder, run):
    """The process that trains a run, once it has its lock and so minds SIGTERM; stopped where it is."""
    if not (folder / paths.state_folder(run) / "lock").exists():
        return None
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            words = process.cmdline()
            ours = words[1:4] == ["-m", "methods.warm", "methods.train"] and paths.run_folder(run) in words
            if ours and Path(process.cwd()) == folder:
                process.suspend()
                return process.pid
    return None


def go_on_when_told_to_end(pid):
    """Wait until SIGTERM is there for a stopped process, then let it run."""

    def told():
        try:
            pending = re.findall(r"^(?:Sig|Shd)Pnd:\s*(\w+)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
        except OSError:
            return True  # it has gone on and ended already
        return any(int(mask, 16) >> signal.SIGTERM - 1 & 1 for mask in pending)

    slurm.wait(told, f"SIGTERM for process {pid}")
    try:
        os.kill(pid, signal.SIGCONT)
    except ProcessLookupError:
        return


def environ_of(pid):
    return dict(item.split("=", 1) for item in Path(f"/proc/{pid}/environ").read_text().split("\0") if "=" in item)


def test_cancelled_and_timed_out_trainings_go_on_and_end_the_same(cluster, checkout, tmp_path):
    reference, log = tmp_path / "reference", tmp_path / "log"
    local = tree.snakemake("--cores", "2", TABLE, "--directory", str(reference), tree=checkout, log=tmp_path / "local")
    assert local.wait(timeout=300) == 0, (tmp_path / "local").read_text()
    planned = plan.load("tiny", data_root=Path("none"), root=checkout)
    lineages = [planned.lineage(run) for run in planned.final_runs("few")]
    assert [len(lineage) for lineage in lineages] == [1, 3]
    runs = [lineage[-1].name for lineage in lineages]  # those that start at once

    through = tree.snakemake(
        TABLE, "--workflow-profile", "workflow/profiles/slurm", *QUICK, tree=checkout, environ=cluster.environ, log=log
    )
    try:
        pids = {}

        def both():
            assert through.poll() is None, log.read_text()
            assert "FAILED: " not in log.read_text(), log.read_text()
            for run in runs:
                if run not in pids and (pid := trainer(checkout, run)):
                    pids[run] = pid
            return len(pids) == 2

        slurm.wait(both, "both trainings under way", pause=0.02)
        cancelled, limited = (environ_of(pids[run])["SLURM_JOB_ID"] for run in runs)
        jobs = cluster.jobs()
        for job in (cancelled, limited):
            assert jobs[job]["Partition"] == slurm.PARTITION
            assert jobs[job]["TresPerJob"] == f"gres:gpu:{slurm.GPU_TYPE}:1"
            assert jobs[job]["TimeLimit"] != "UNLIMITED"
        assert {environ_of(pid)["CUDA_VISIBLE_DEVICES"] for pid in pids.values()} == {"0", "1"}

        cluster.call("scontrol", "update", f"JobId={limited}", "TimeLimit=1")
        cluster.call("scancel", cancelled)
        for run in runs:
            go_on_when_told_to_end(pids[run])
        assert through.wait(timeout=400) == 0, log.read_text()
    finally:
        if through.poll() is None:
            through.kill()
            through.wait()

    jobs = cluster.jobs()
    assert (jobs[cancelled]["JobState"], jobs[limited]["JobState"]) == ("CANCELLED", "TIMEOUT")
    assert sorted(job["JobState"] for job in jobs.values()) == ["CANCELLED", *["COMPLETED"] * 6, "TIMEOUT"]
    for run in runs:
        assert "resumed at epoch" in (checkout / paths.log("train", run)).read_text()
    for run in (item.name for lineage in lineages for item in lineage):
        for name in (paths.model(run), paths.history(run)):
            assert (checkout / name).read_bytes() == (reference / name).read_bytes(), name
    assert (checkout / TABLE).read_text() == (reference / TABLE).read_text()


def test_a_run_of_two_devices_has_them_on_one_machine_and_goes_on_when_cancelled(cluster, checkout, tmp_path):
    scale = checkout / "workflow/config/scales/tiny.yaml"
    scale.write_text(scale.read_text().replace("train.batch: 24", "train.batch: 24, train.bn_devices: 2"))
    run = plan.load("tiny", data_root=Path("none"), root=checkout).final_runs("few", "rst")[0]
    words = [paths.train_manifest(run), "--workflow-profile", "workflow/profiles/slurm", *QUICK]
    through = tree.snakemake(*words, tree=checkout, environ=cluster.environ, log=tmp_path / "log")

    def first_process():
        said = (tmp_path / "log").read_text()
        assert through.poll() is None, said
        assert "FAILED: " not in said, said
        try:
            pid = json.loads((checkout / paths.progress(run)).read_text())["pid"]
        except (OSError, ValueError):
            return None
        os.kill(pid, signal.SIGSTOP)
        return pid

    try:
        pid = slurm.wait(first_process, "the training under way", pause=0.02)
        job = environ_of(pid)["SLURM_JOB_ID"]
        asked = cluster.jobs()[job]
        assert asked["TresPerJob"] == f"gres:gpu:{slurm.GPU_TYPE}:2"
        assert (asked["NumNodes"], asked["NumCPUs"]) == ("1", "2")
        assert environ_of(pid)["CUDA_VISIBLE_DEVICES"] == "0,1"
        cluster.call("scancel", job)
        go_on_when_told_to_end(pid)
        assert through.wait(timeout=400) == 0, (tmp_path / "log").read_text()
    finally:
        if through.poll() is None:
            through.kill()
            through.wait()
    assert "resumed at epoch" in (checkout / paths.log("train", run)).read_text()
    assert json.loads((checkout / paths.train_manifest(run)).read_text())["provenance"]["processes"] == 2
