"""The code behind a module, computed from imports."""

import pytest

from methods.core import imports
from methods.core.revision import ROOT


def test_imports_are_followed_at_any_depth(tmp_path):
    for name, text in {
        "workflow/__init__.py": "",
        "workflow/a.py": "def f():\n    from workflow import b\n",
        "workflow/b.py": "import methods.core.c\n",
        "workflow/unused.py": "import workflow.a\n",
        "methods/__init__.py": "",
        "methods/core/__init__.py": "",
        "methods/core/c.py": "import json\nfrom workflow.a import f\n",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    names = [path.relative_to(tmp_path).as_posix() for path in imports.behind("workflow.a", root=tmp_path)]
    assert names == ["methods/__init__.py", "methods/core/__init__.py", "methods/core/c.py"] + [
        f"workflow/{name}.py" for name in ("__init__", "a", "b")
    ]


@pytest.mark.parametrize(
    ("module", "reached"),
    [
        ("tables.render", ["workflow/suite/tables/latex.py", "workflow/suite/results/stale.py", "methods/core/run_spec.py"]),
        ("page.render", ["workflow/suite/paper/claims/formulas.py", "workflow/suite/tables/caption.py"]),
        ("paper.checks", ["workflow/suite/paper/claims/proofs.py", "workflow/suite/paper/audit/words.py"]),
    ],
)
def test_what_is_rendered_depends_on_what_it_reaches(module, reached):
    paths = {path.relative_to(ROOT).as_posix() for path in imports.behind(f"workflow.suite.{module}")}
    assert set(reached) <= paths
    assert not any(path.startswith("methods/") and not path.startswith(("methods/core/", "methods/__init__")) for path in paths)
