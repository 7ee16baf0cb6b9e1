"""The project as a package: what a wheel holds, and the installed command far from any clone."""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from methods.core import paths, revision
from workflow.suite.planning.config import ROOT

PACKAGES = ("methods", "baselines", "workflow", "snakemake_logger_plugin_calm")
OFFLINE = ("--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation", "--no-index")


def pip(*words: str | Path, python: str | Path = sys.executable) -> None:
    done = subprocess.run([python, "-m", "pip", *map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def copied(folder: Path) -> Path:
    """The sources, where building leaves its traces without harm."""
    for name in PACKAGES:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "requirements.txt", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    return folder


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    pip("wheel", copied(folder / "sources"), *OFFLINE, "--wheel-dir", folder)
    return next(folder.glob("*.whl"))


class Installed:
    """A virtual environment that has the package, and all that this interpreter has by a path."""

    def __init__(self, folder: Path, *what: str | Path):
        self.bin, self.away = folder / "venv" / "bin", folder / "away"
        self.away.mkdir()
        venv.create(folder / "venv", with_pip=False, symlinks=True)
        site = next((folder / "venv").glob("lib/python*/site-packages"))
        (site / "others.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
        pip("--python", self.bin / "python", "install", *what, *OFFLINE)

    def __call__(self, *words: str) -> subprocess.CompletedProcess:
        clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | {"OMP_NUM_THREADS": "1"}
        path = f"{self.bin}{os.pathsep}{os.environ['PATH']}"
        return subprocess.run(
            [str(self.bin / words[0]), *words[1:]], cwd=self.away, capture_output=True, text=True, env=clean | {"PATH": path}, check=False
        )


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    return Installed(tmp_path_factory.mktemp("installed"), wheel)


def test_a_wheel_holds_every_file(wheel):
    inside = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    files = {path for name in PACKAGES for path in (ROOT / name).rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    assert inside == {path.relative_to(ROOT).as_posix() for path in files}


def test_a_wheel_needs_what_was_tested(wheel):
    archive = zipfile.ZipFile(wheel)
    metadata = archive.read(next(name for name in archive.namelist() if name.endswith("METADATA"))).decode()
    lines = [line.split("#")[0].strip() for line in (ROOT / "requirements.txt").read_text().splitlines()]
    needs = {line.removeprefix("Requires-Dist: ").lower() for line in metadata.splitlines() if line.startswith("Requires-Dist: ")}
    assert needs == {line.lower() for line in lines if line}


def test_the_command_plans_in_any_folder(installed):
    done = installed("suite", "plan")
    assert done.returncode == 0, done.stderr
    assert " cells, 446 numbers of the paper" in done.stdout.splitlines()[-1]


def test_it_is_told_by_its_own_name(installed):
    assert installed("suite", "--help").stdout.startswith("usage: suite ")


def test_it_takes_results_from_the_folder_that_it_is_called_in(installed):
    (installed.away / "results").mkdir(exist_ok=True)
    done = installed("suite", "render", "--table", "bn_ablation")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [paths.table("demo", "bn_ablation", kind) for kind in paths.FORMATS]
    assert "Rendered by an unversioned copy." in (installed.away / paths.table("demo", "bn_ablation", "md")).read_text()


def test_the_library_is_there(installed):
    done = installed("python", "-c", "from methods import evaluate; print(evaluate.__file__)")
    assert done.returncode == 0, done.stderr
    assert str(ROOT) not in done.stdout


def test_snakemake_takes_the_installed_rules_and_console(installed):
    snakefile = installed("suite", "snakefile").stdout.strip()
    done = installed("python", "-m", "snakemake", "-s", snakefile, "--cores", "1", paths.paper_audit())
    assert done.returncode == 0, done.stderr
    assert f"made {paths.paper_audit()}" in done.stdout + done.stderr


def test_a_clone_is_not_run_with_the_code_of_another_place(installed, tmp_path):
    clone = copied(tmp_path / "clone")
    words = ("-m", "snakemake", "-s", str(clone / "workflow" / "Snakefile"), "--cores", "1", paths.paper_audit())
    done = installed("python", *words)
    assert done.returncode != 0
    assert f"this Snakefile is of {clone}, but the suite of" in done.stdout + done.stderr


def test_an_editable_install_has_the_console(tmp_path):
    clone = copied(tmp_path / "clone")
    inside = Installed(tmp_path, "-e", clone)
    code = "from snakemake_interface_logger_plugins.registry import LoggerPluginRegistry as R; print(R().is_installed('calm'))"
    assert inside("python", "-c", code).stdout.strip() == "True"
    assert inside("suite", "snakefile").stdout.strip() == str(clone / "workflow" / "Snakefile")


def test_what_lies_in_a_checkout_without_being_of_it_has_no_commit(tmp_path):
    copy, git = copied(tmp_path / "copy"), ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
    (tmp_path / "mine.txt").write_text("mine")
    for words in (["init", "-q"], ["add", "mine.txt"], ["commit", "-qm", "mine"]):
        subprocess.run([*git, *words], check=True)
    assert revision.head(copy) is None
    assert revision.dirty(copy) is None
    for words in (["add", "copy"], ["commit", "-qm", "its own"]):
        subprocess.run([*git, *words], check=True)
    assert revision.head(copy) == revision.git("rev-parse", "HEAD", root=tmp_path)
    assert revision.dirty(copy) is False
