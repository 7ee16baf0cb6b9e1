"""Methods of the repository and of installed packages, by name."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from methods.core import fingerprint
from methods.core.errors import UserError
from methods.core.method_files import GROUP, locate, located
from methods.training.registry import load_method, load_recipe
from workflow.suite.planning import recipes
from workflow.suite.planning.config import ROOT
from workflow.suite.results import stale

METHOD = """from methods.training.method import Method
from outside_pack.helper import NAME

RECIPE = {"version": 1, "name": "Outside", "cites": "nobody", "run": {"arch": "rn18"}}


class Outside(Method):
    pass


METHOD = Outside
"""


@pytest.fixture
def offer(tmp_path, monkeypatch):
    """Install a package that offers `name` as the module outside_pack.mine."""

    def install(name: str, module: str = "outside_pack.mine") -> Path:
        package, facts = tmp_path / "outside_pack", tmp_path / "outside_pack-1.0.dist-info"
        package.mkdir()
        facts.mkdir()
        (package / "__init__.py").write_text("")
        (package / "helper.py").write_text("NAME = 1\n")
        (package / "mine.py").write_text(METHOD)
        (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: outside-pack\nVersion: 1.0\n")
        (facts / "entry_points.txt").write_text(f"[{GROUP}]\n{name} = {module}\n")
        monkeypatch.syspath_prepend(tmp_path)
        return package

    yield install
    for module in [name for name in sys.modules if name.startswith("outside_pack")]:
        del sys.modules[module]


def test_the_repository_has_the_methods_of_the_paper():
    assert set(recipes.EXPECTED) <= set(located())
    assert located()["binary_subnet"].module == "methods.binary_subnet"
    assert located()["rst"].path == ROOT / "baselines" / "rst.py"


def test_a_package_offers_a_method(offer):
    package = offer("outside")
    assert locate("outside").path == package / "mine.py"
    assert locate("outside").package == "outside-pack"
    assert recipes.load_all(ROOT)["outside"].name == "Outside"
    assert "outside_pack.mine" not in sys.modules  # planning does not run it
    assert load_recipe("outside")["version"] == 1
    assert load_method("outside").__name__ == "Outside"


def test_its_numbers_turn_stale_with_its_package(offer):
    package = offer("outside")
    recorded = fingerprint.of_training("outside")
    assert {"outside:mine.py", "outside:helper.py"} <= recorded.keys()
    assert stale.changed(recorded) == []
    (package / "helper.py").write_text("NAME = 2\n")
    assert stale.changed(recorded) == ["outside:helper.py"]


def test_numbers_of_a_method_that_is_not_installed_any_more_are_stale():
    assert stale.changed({"gone:mine.py": "0"}) == ["gone:mine.py"]


def test_a_package_cannot_take_a_name(offer):
    offer("rst")
    with pytest.raises(UserError, match="package 'outside-pack' offers a method 'rst', a name that baselines/rst.py has"):
        located()


def test_a_module_that_is_not_there(offer):
    offer("outside", "outside_pack.nowhere")
    with pytest.raises(UserError, match="'outside_pack.nowhere' as robust_binary_subnets.methods, which is not a Python file"):
        located()


def test_unknown_names():
    with pytest.raises(UserError, match="unknown 'method: alchemy'; allowed: binary_subnet, at, "):
        locate("alchemy")
