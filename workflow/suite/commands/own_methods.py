"""Commands for methods of one's own: check-method, new-method."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from methods.core.errors import UserError
from workflow.suite.commands.command import Add
from workflow.suite.planning import config, plan, recipes, scaffold, toy


def add(command: Add) -> None:
    """The commands of this module."""
    about = "What every method promises, asked of one at toy size: a line per promise, exit code 1 if one is broken."
    check = command("check-method", _check, about)
    check.add_argument("method", help="of baselines/, or of an installed package")
    new = command("new-method", _new, "Write a method to start from: its file, a table with a row for it, a test.")
    new.add_argument("name", help="small letters, digits and _")


def _check(planned: plan.Plan, options: argparse.Namespace) -> tuple[str, int]:
    known = recipes.load_all(config.ROOT)
    if options.method not in known:
        raise UserError(f"no method is called '{options.method}'; allowed: {', '.join(known)}")
    cases = toy.cases(known[options.method], planned)
    if not cases:
        raise UserError(
            f"no cell of a table trains '{options.method}' on CIFAR-10 at scale {planned.scale.name}; there is nothing to check"
        )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cases.json"
        path.write_text(json.dumps([{"label": label, "specs": specs} for label, specs in cases.items()]), encoding="utf-8")
        places = os.pathsep.join(filter(None, [str(config.ROOT), os.environ.get("PYTHONPATH")]))
        command = [sys.executable, "-m", "methods.contract", "--cases", str(path)]
        done = subprocess.run(command, env={**os.environ, "PYTHONPATH": places}, check=False)
    if done.returncode not in (0, 1):
        raise UserError(f"the check of '{options.method}' ended with exit code {done.returncode}")
    return f"{options.method}: {'keeps' if done.returncode == 0 else 'does not keep'} what a method promises", done.returncode


def _new(planned: plan.Plan, options: argparse.Namespace) -> str:
    paths = [path.relative_to(config.ROOT) for path in scaffold.write_method(options.name, config.ROOT)]
    return "\n".join([*map(str, paths), f"`suite check-method {options.name}` asks it for what a method promises"])
