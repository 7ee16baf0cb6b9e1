"""The command that makes committed networks tangible: recheck."""

import argparse
import subprocess
import sys

from methods.core import paths
from methods.core.errors import UserError
from workflow.suite.commands.command import Add
from workflow.suite.planning import config, plan

FIRST = "main_comparison.ours.cifar10-binary"
DATASET = "cifar10"  # whose first test images ship with the project


def add(command: Add) -> None:
    """The commands of this module."""
    recheck = command("recheck", _recheck, "Attack an evaluated network again on shipped images; the recorded outcome beside the new one.")
    recheck.add_argument("--cell", help=f"table.row.column (default: {FIRST}, or any pruned network that is there)")
    recheck.add_argument("--examples", type=int, default=50, metavar="N", help="how many of the first test images (default: 50)")


def chosen(planned: plan.Plan, options: argparse.Namespace) -> tuple[str, str]:
    """The cell whose network is attacked, and its Run: the first seed that is evaluated."""
    cells = [planned.cells[FIRST]] if FIRST in planned.cells else []
    cells += [cell for cell in planned.cells.values() if cell.runs and "sparsity" in planned.runs[cell.runs[0]].spec]
    if options.cell is not None:
        if options.cell not in planned.cells:
            raise UserError(f"--cell {options.cell}: no such cell; cells are named table.row.column, such as {FIRST}")
        cells = [planned.cells[options.cell]]
    for cell in cells:
        for run in cell.runs:
            result = options.directory / paths.evaluation(run, planned.evaluations[run].id)
            if planned.runs[run].spec["dataset"] == DATASET and result.is_file():
                return cell.address, run
    what = f"{options.cell}: no network of this cell" if options.cell else "no pruned network for CIFAR-10"
    raise UserError(f"{what} is evaluated at scale '{planned.scale.name}' under {options.directory.resolve()}")


def _recheck(planned: plan.Plan, options: argparse.Namespace) -> tuple[str, int]:
    address, run = chosen(planned, options)
    names = {"--run": paths.run_folder(run), "--result": paths.evaluation(run, planned.evaluations[run].id)}
    words = [word for key, name in names.items() for word in (key, str(options.directory.resolve() / name))]
    command = [sys.executable, "-m", "methods.recheck", *words, "--examples", str(options.examples)]
    print(f"{address} at scale {planned.scale.name}: {run}", flush=True)
    done = subprocess.run(command, cwd=config.ROOT, stdout=subprocess.PIPE, text=True, check=False)
    return done.stdout.rstrip(), done.returncode
