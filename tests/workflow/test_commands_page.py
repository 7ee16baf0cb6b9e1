"""docs/commands.md: every command is there, and every example is one."""

import argparse
import re
import shlex

import pytest

from workflow.suite.__main__ import parser
from workflow.suite.planning.config import ROOT

PAGE = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"`(suite [^`]+)`", PAGE)
INTERNAL = {"methods.runtime.warm_server"}  # started by methods.warm


def registered() -> list[str]:
    choices = next(action for action in parser()._actions if isinstance(action, argparse._SubParsersAction)).choices
    return list(choices)


def modules() -> set[str]:
    """Modules of the library that are commands."""
    programs = {path for path in (ROOT / "methods").rglob("*.py") if '__name__ == "__main__"' in path.read_text(encoding="utf-8")}
    names = {".".join(path.relative_to(ROOT).with_suffix("").parts) for path in programs}
    return {name.removesuffix(".__main__") for name in names} - INTERNAL


@pytest.mark.parametrize("name", registered())
def test_every_command_of_the_suite_has_an_example(name):
    assert any(example.split()[1] == name for example in EXAMPLES)


@pytest.mark.parametrize("name", sorted(modules()))
def test_every_command_of_the_library_is_named(name):
    assert re.search(rf"`(?:python -m )?{re.escape(name)}[ `]", PAGE)


@pytest.mark.parametrize("example", [text for text in EXAMPLES if "COMMAND" not in text])
def test_examples_are_understood(example):
    words = shlex.split(example)[1:]
    assert callable(parser().parse_args(words).run)
