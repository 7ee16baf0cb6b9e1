"""Who may import whom: the contracts of import-linter (pyproject.toml), and what it cannot see."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from workflow.suite.planning.config import ROOT

CONTRACTS = [contract["name"] for contract in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]]
# One offence against each contract.
OFFENCES = {
    "methods/attacks/offence.py": "from methods.training import losses\n",
    "methods/networks/offence.py": "def f():\n    from baselines import at\n",
    "baselines/at.py": "import workflow.suite.planning.plan\n",
    "baselines/rst.py": "from baselines.trades import METHOD as OTHER\n",
    "workflow/suite/planning/offence.py": "def f():\n    import methods.data.load\n",
    "methods/core/offence.py": "def f():\n    import torch.nn\n",
}


def lint(folder: Path) -> tuple[int, str]:
    words = [sys.executable, "-c", "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(cache_dir=None))"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_the_contracts_hold():
    code, output = lint(ROOT)
    assert code == 0, output
    assert f"{len(CONTRACTS)} kept, 0 broken" in output


def test_every_contract_sees_an_offence(tmp_path):
    for name in ("methods", "baselines", "workflow"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "*.webp"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for name, text in OFFENCES.items():
        with (tmp_path / name).open("a") as stream:
            stream.write(text)
    code, output = lint(tmp_path)
    assert code != 0
    for name in CONTRACTS:
        assert f"{name} BROKEN" in output


def test_planning_loads_no_torch():
    """Also not through a third package."""
    modules = ("planning.plan", "results.show", "results.status", "tables.render")
    code = "import sys; " + "; ".join(f"import workflow.suite.{name}" for name in modules) + "; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def rule_files() -> list[Path]:
    return [ROOT / "Snakefile", ROOT / "workflow" / "Snakefile", *sorted((ROOT / "workflow" / "rules").glob("*.smk"))]


@pytest.mark.parametrize("path", rule_files(), ids=lambda path: path.name)
def test_rule_files_do_not_rebind_snakemakes_workflow(path):
    """`import workflow` in a rule file would hide Snakemake's own object of that name."""
    assert not re.search(r"^\s*import workflow", path.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("path", sorted((ROOT / "workflow" / "scripts").glob("*.py")), ids=lambda path: path.name)
def test_scripts_stay_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 30


def modules() -> list[Path]:
    return [path for package in ("methods", "baselines", "workflow") for path in sorted((ROOT / package).rglob("*.py"))]


def test_modules_stay_short():
    lengths = {path.relative_to(ROOT).as_posix(): len(path.read_text(encoding="utf-8").splitlines()) for path in modules()}
    assert {name: lines for name, lines in lengths.items() if lines > 250} == {}
