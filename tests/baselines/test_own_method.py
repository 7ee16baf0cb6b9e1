"""Methods of one's own: the start of one, one of an installed package, and promises that are broken."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from methods import contract
from methods.core import paths
from methods.core.method_files import GROUP
from tests.cluster import tree
from workflow.suite.planning import plan, recipes, toy
from workflow.suite.planning.config import ROOT

MODULE = """
import torch.nn.functional as F
from methods.training.losses import accuracy
from methods.training.method import Method

RECIPE = {recipe!r}


class Outside(Method):
    calls = 0

    def loss(self, batch, draws):
        logits = self.net(self.adversarial(batch, draws)[1])
        {body}
        return loss, {{"acc": accuracy(logits, batch.y)}}


METHOD = Outside
"""
HONEST = "loss = F.cross_entropy(logits, batch.y)"
FORGETFUL = "self.calls += 1; loss = F.cross_entropy(logits, batch.y) * (1 + self.calls)"  # a state that nobody saves


def recipe() -> dict:
    plain = recipes.load_all(ROOT)["at"]
    return {"version": 1, "name": "Outside", "cites": "nobody", "run": {**plain.run, "arch": "rn18"}}


def install(folder: Path, body: str) -> None:
    """A package in a folder, as pip would leave it, that offers the method `outside`."""
    package, facts = folder / "outside_pack", folder / "outside_pack-1.0.dist-info"
    package.mkdir(parents=True)
    facts.mkdir()
    (package / "__init__.py").write_text("")
    (package / "mine.py").write_text(MODULE.format(recipe=recipe(), body=body))
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: outside-pack\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(f"[{GROUP}]\noutside = outside_pack.mine\n")


def run(*words: str, tree: Path, packages: Path | None = None) -> subprocess.CompletedProcess:
    environ = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(packages or "")}
    return subprocess.run([sys.executable, "-m", *words], cwd=tree, capture_output=True, text=True, env=environ, check=False)


def suite(*words: str, **places: Path) -> subprocess.CompletedProcess:
    return run("workflow.suite", *words, **places)


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    folder = tree.copy(tmp_path_factory.mktemp("clone"))
    (folder / "pyproject.toml").write_text("")
    return folder


def test_the_start_of_a_method_is_planned_and_keeps_its_promises(clone):
    done = suite("new-method", "my_own", tree=clone)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:3] == ["baselines/my_own.py", "workflow/config/tables/my_own.yaml", "tests/baselines/test_my_own.py"]
    planned = suite("plan", "--table", "my_own", tree=clone)
    assert planned.stdout.splitlines()[-1].startswith("2 cells, 0 numbers of the paper; 2 distinct final Runs")
    checked = suite("check-method", "my_own", tree=clone)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert [line.split(":")[0] for line in checked.stdout.splitlines()] == ["pass  my_own-fp-pgd"] * 4 + ["my_own"]
    again = suite("new-method", "my_own", tree=clone)
    assert again.returncode == 2
    assert "'my_own' is taken by a method or a table; choose another name" in again.stderr


def test_its_test_passes(clone):
    for path in (ROOT / "tests" / "__init__.py", ROOT / "tests" / "specs.py", ROOT / "tests" / "baselines" / "__init__.py"):
        target = clone / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(path.read_text())
    if not (clone / "baselines" / "my_own.py").exists():
        suite("new-method", "my_own", tree=clone)
    done = run("pytest", "-q", "-p", "no:cacheprovider", "tests/baselines/test_my_own.py", tree=clone)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["new-method", "My-Own"], "'My-Own' cannot be a method's name; allowed: small letters, digits and _, a letter first"),
        (["new-method", "rst"], "'rst' is taken by a method or a table"),
        (["check-method", "alchemy"], "no method is called 'alchemy'; allowed: binary_subnet, at"),
    ],
)
def test_wrong_names(clone, words, message):
    done = suite(*words, tree=clone)
    assert done.returncode == 2
    assert message in done.stderr


def test_a_method_of_a_package_is_planned_trained_and_checked(clone, tmp_path):
    install(tmp_path / "packages", HONEST)
    (clone / "workflow/config/tables/outside.yaml").write_text(
        "title: Outside\nmetric: robust_acc\nstub: [Method]\nrun: {dataset: cifar10}\ncolumns: [{id: fp, head: [FP]}]\n"
        "rows: [{id: mine, labels: [Outside], run: {method: outside}}]\n"
    )
    places = {"tree": clone, "packages": tmp_path / "packages"}
    shown = suite("show", "outside.mine.fp", "--scale", "tiny", **places)
    assert shown.returncode == 0, shown.stderr
    spec, _ = json.JSONDecoder().raw_decode(shown.stdout[shown.stdout.index("\n{") + 1 :])
    assert spec["method"] == "outside"
    trained = run("methods.train", "--spec", json.dumps(spec), "--out", str(tmp_path / "run"), **places)
    assert trained.returncode == 0, trained.stderr
    assert (tmp_path / "run" / paths.MANIFEST).is_file()
    checked = suite("check-method", "outside", **places)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert checked.stdout.count("pass  outside-fp-pgd: ") == len(contract.PROMISES)
    (clone / "workflow/config/tables/outside.yaml").unlink()


def test_a_broken_promise_is_named(tmp_path, monkeypatch, capsys):
    install(tmp_path, FORGETFUL)
    monkeypatch.syspath_prepend(tmp_path)
    cases = toy.cases(recipes.load_all(ROOT)["outside"], plan.load("demo", data_root=tmp_path))
    path = tmp_path / "cases.json"
    path.write_text(json.dumps([{"label": label, "specs": specs} for label, specs in cases.items()]))
    try:
        assert contract.main(["--cases", str(path)]) == 1
    finally:
        for module in [name for name in sys.modules if name.startswith("outside_pack")]:
            del sys.modules[module]
    [broken] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("FAIL")]
    assert broken.startswith("FAIL  outside-fp-pgd: Interrupted and resumed, it ends in the same bits: its history differs")
