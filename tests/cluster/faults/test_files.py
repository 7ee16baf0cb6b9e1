"""Files are damaged, copied or left without room, and the same command again ends in the same table."""

import contextlib
import json
import os
import shutil
import subprocess
import sys

import pytest

from tests.cluster import tree
from tests.cluster.faults.results import PATIENCE, ROWS, TABLE, assert_same, contents, ended

pytestmark = pytest.mark.timeout(1800)  # a minute at the most, but of many starts of Snakemake


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
