"""Who may import whom: planning without torch, methods without the workflow, baselines without each other."""

import ast
import re
from pathlib import Path

import pytest

from workflow.suite.planning.config import ROOT

FORBIDDEN = {
    "workflow/suite": ("torch", "torchvision", "baselines", "snakemake"),
    "methods": ("workflow", "baselines"),
    "baselines": ("workflow", "baselines"),
}


def imported(source: str) -> set[str]:
    """Every module a source imports, at any depth; relative imports keep their dots."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            names |= {module} | ({f"{module}.{alias.name}" for alias in node.names} if not node.module or "." not in module else set())
    return names


def offences(source: str, layer: str) -> set[str]:
    """The imports a file of this layer must not have; relative ones count, since they reach a sibling."""
    bad = {name for name in imported(source) if name.split(".")[0] in FORBIDDEN[layer]}
    if layer == "workflow/suite":
        bad |= {name for name in imported(source) if name.split(".")[0] == "methods" and name.split(".")[1:2] != ["core"]}
    return bad | {name for name in imported(source) if name.startswith(".") and layer == "baselines"}


FILES = [(layer, path) for layer in FORBIDDEN for path in sorted((ROOT / layer).rglob("*.py"))]


@pytest.mark.parametrize(("layer", "path"), FILES, ids=[str(path.relative_to(ROOT)) for _, path in FILES])
def test_a_layer_imports_only_what_it_may(layer, path):
    assert offences(path.read_text(encoding="utf-8"), layer) == set()


@pytest.mark.parametrize(
    ("layer", "source"),
    [
        ("workflow/suite", "def f():\n    import torch.nn"),
        ("workflow/suite", "from methods.data import load"),
        ("methods", "from baselines import at"),
        ("methods", "import workflow.suite.planning.plan"),
        ("baselines", "from baselines.at import Method"),
        ("baselines", "from .at import Method"),
        ("baselines", "from . import at"),
    ],
)
def test_the_check_sees_offences(layer, source):
    assert offences(source, layer)


def test_planning_loads_no_torch():
    """Also not through a third package."""
    import subprocess
    import sys

    modules = "planning.plan, results.show, results.status, tables.render"
    code = "import sys; " + "; ".join(f"import workflow.suite.{name}" for name in modules.split(", ")) + "; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def rule_files() -> list[Path]:
    return [ROOT / "Snakefile", *sorted((ROOT / "workflow" / "rules").glob("*.smk"))]


@pytest.mark.parametrize("path", rule_files(), ids=lambda path: path.name)
def test_rule_files_do_not_rebind_snakemakes_workflow(path):
    """`import workflow` in a rule file would hide Snakemake's own object of that name."""
    assert not re.search(r"^\s*import workflow", path.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("path", sorted((ROOT / "workflow" / "scripts").glob("*.py")), ids=lambda path: path.name)
def test_scripts_stay_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 30
