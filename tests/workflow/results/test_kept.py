"""Committed results: what is kept, what is refused, and that a clone goes on from them without training."""

import os
import re
import subprocess
import sys

import pytest

from methods.core import paths, sealed
from methods.core.errors import UserError
from tests.workflow import finished
from workflow.suite.__main__ import main
from workflow.suite.planning import plan
from workflow.suite.planning.config import ROOT
from workflow.suite.results import kept

KINDS = {"train.json", "history.jsonl", "network.rbs"}


def git(folder, *words):
    identity = ("-c", "user.name=A", "-c", "user.email=a@b.c")
    return subprocess.run(["git", "-C", str(folder), *identity, *words], check=True, capture_output=True, text=True).stdout


def repository_at(folder):
    """An empty one with the ignored places of this project."""
    folder.mkdir()
    git(folder, "init", "--quiet")
    (folder / ".gitignore").write_text((ROOT / ".gitignore").read_text())
    git(folder, "add", ".gitignore")
    git(folder, "commit", "--quiet", "-m", "Start")
    return folder


def made(folder, name, **provenance):
    """Let a manifest say more of what made it."""
    value = sealed.read(folder / name)
    sealed.write(folder / name, value | {"provenance": value.get("provenance", {}) | provenance})


@pytest.fixture
def demo():
    return plan.load("demo", data_root=ROOT / "none")


@pytest.fixture
def work(demo, tmp_path):
    """A repository with a pruned Run that is evaluated, one of two phases, and a third that is only trained."""
    folder = repository_at(tmp_path / "work")
    chain = demo.lineage(demo.cells["main_comparison.hydra.cifar10-fp"].runs[0])
    for number, item in enumerate(reversed(chain)):
        finished.train(demo, item.name, folder)
        made(folder, paths.train_manifest(item.name), host="somewhere", started=100.0 * number, wall_seconds=50.0)
    ours, trained = demo.cells["main_comparison.ours.cifar10-binary"].runs[0], demo.cells["main_comparison.at.cifar10-fp"].runs[0]
    finished.train(demo, ours, folder)
    finished.train(demo, trained, folder)
    for run in (chain[0].name, ours):
        finished.evaluate(demo, run, folder)
    return folder


def tracked(folder):
    return set(git(folder, "ls-files", "results").split())


def test_evaluated_runs_are_tracked_with_their_parents(demo, work):
    done = kept.keep(demo, work)
    ours = demo.cells["main_comparison.ours.cifar10-binary"].runs[0]
    chain = [item.name for item in demo.lineage(demo.cells["main_comparison.hydra.cifar10-fp"].runs[0])]
    assert {name.split("/")[2] for name in tracked(work)} == {ours, *chain}
    assert {name.split("/", 3)[3] for name in tracked(work) if ours in name} == {*KINDS, f"eval/{demo.evaluations[ours].id}.json"}
    assert done.runs == 1 + len(chain)
    assert done.size == sum((work / name).stat().st_size for name in tracked(work))


def test_keeping_twice_changes_nothing(demo, work):
    first = kept.keep(demo, work)
    git(work, "commit", "--quiet", "-m", "Results")
    assert kept.keep(demo, work) == first
    assert git(work, "status", "--porcelain") == ""


def test_names_of_machines_are_taken_out(demo, work):
    name = next(paths.train_manifest(item.name) for item in demo.lineage(demo.cells["main_comparison.hydra.cifar10-fp"].runs[0]))
    stamp = (work / name).stat().st_mtime_ns
    kept.keep(demo, work)
    assert sealed.read(work / name)["provenance"].keys() == {"source", "started", "wall_seconds"}
    assert (work / name).stat().st_mtime_ns == stamp


@pytest.mark.parametrize("text", ["/home/me/data/x.npy", "read from /srv/images/", "C:\\images"])
def test_places_on_a_disk_are_refused(demo, work, text):
    name = paths.train_manifest(demo.cells["main_comparison.ours.cifar10-binary"].runs[0])
    made(work, name, origin=text)
    with pytest.raises(UserError, match=re.escape(f"{name}: provenance.origin: names a machine")):
        kept.keep(demo, work)
    assert tracked(work) == set()


@pytest.mark.parametrize("text", ["8/255", "results/runs/x", "https://a.b/c/d", "CIFAR-10: train/val/test"])
def test_other_strokes_are_no_places(text):
    assert list(kept.private({"a": [text]})) == []


def test_too_much_is_refused(demo, work):
    with pytest.raises(UserError, match=r"MB would be committed, and 0 MB are allowed; the largest: results/runs/.*network.rbs"):
        kept.keep(demo, work, limit=1000)
    assert tracked(work) == set()


def test_damage_is_not_kept(demo, work):
    (work / paths.history(demo.cells["main_comparison.ours.cifar10-binary"].runs[0])).write_text("{}\n")
    with pytest.raises(UserError, match="history.jsonl: is damaged"):
        kept.keep(demo, work)
    assert tracked(work) == set()


def test_tracked_runs_of_other_plans_are_told(demo, work, capsys):
    other = work / paths.train_manifest("at.0123456789ab")
    sealed.write(other, {"spec": {}})
    git(work, "add", "--force", str(other))
    assert main(["keep", "--scale", "demo", "--directory", str(work), "--data-root", "none"]) == 0
    assert "of no Run of this plan are 1 tracked files such as results/runs/at.0123456789ab/train.json" in capsys.readouterr().out


def test_nothing_finished_is_nothing_to_keep(demo, tmp_path):
    with pytest.raises(UserError, match="no Run of scale 'demo' is evaluated"):
        kept.keep(demo, tmp_path)


def test_reports_of_the_scale_that_is_committed_are_not_ignored(work):
    for name in ("lite/main.md", "lite/rows/x.md", "lite/partial/x.md", "demo/main.md"):
        (work / "reports" / name).parent.mkdir(parents=True, exist_ok=True)
        (work / "reports" / name).write_text("x")
    assert git(work, "status", "--porcelain", "--untracked-files=all").split() == ["??", "reports/lite/main.md"]


def test_a_clone_goes_on_from_what_is_kept(work, tmp_path, capsys):
    """Of scale lite: nothing that is kept is trained or evaluated again, whatever the time stamps of the clone; tables show it."""
    lite = plan.load("lite", data_root=ROOT / "none")
    chain = lite.lineage(lite.cells["main_comparison.hydra.cifar10-fp"].runs[0])
    dense = lite.cells["main_comparison.at.cifar10-fp"].runs[0]
    for number, run in enumerate([*(item.name for item in reversed(chain)), dense]):
        finished.train(lite, run, work, epochs=2)
        made(work, paths.train_manifest(run), started=100.0 * number, wall_seconds=50.0)
    for run in (chain[0].name, dense):
        finished.evaluate(lite, run, work)
    assert main(["keep", "--scale", "lite", "--directory", str(work), "--data-root", "none"]) == 0
    git(work, "commit", "--quiet", "-m", "Results")
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", str(work), str(clone)], check=True)
    assert not list(clone.rglob("*.safetensors"))
    for second, path in enumerate(sorted(clone.rglob("*.json"), reverse=True)):  # the worst order: evaluations before trainings
        os.utime(path, (1e9 - second * ("eval" in path.parts), 1e9 - second))
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "workflow" / "Snakefile"), "--directory", str(clone)]
    words = ["--cores", "1", "-n", paths.table("lite", "main_comparison", "md"), "--config", "scale=lite", "data_root=none"]
    output = subprocess.run([*command, *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    needed = {item.name for run in lite.final_runs("main_comparison") for item in lite.lineage(run)}
    assert re.search(rf"^train +{len(needed) - len(chain) - 1}$", output, re.MULTILINE), output
    assert re.search(rf"^evaluate +{len(lite.final_runs('main_comparison')) - 2}$", output, re.MULTILINE), output
    assert main(["render", "--scale", "lite", "--table", "main_comparison", "--directory", str(clone), "--data-root", "none"]) == 0
    robust = sealed.read(clone / paths.evaluation(dense, lite.evaluations[dense].id))["robust_acc"]
    assert f"{100 * robust:.2f}" in (clone / paths.table("lite", "main_comparison", "md")).read_text()
