"""Commands around Snakemake: refresh, snakefile."""

import argparse
import os
import shlex
import subprocess
import sys

from tabulate import tabulate

from methods.core.errors import UserError
from workflow.suite.commands.command import Add
from workflow.suite.planning import config, plan
from workflow.suite.results import refresh

SNAKEFILE = config.ROOT / "workflow" / "Snakefile"


def add(command: Add) -> None:
    """The commands of this module."""
    again = command("refresh", _refresh, "Make again what is stale, and nothing else: numbers whose code has changed since.")
    again.add_argument("--table", help="only of this table")
    again.add_argument("--cores", type=int, metavar="N", help="do it, with so many cores; without, say what there is to do")
    about = "Where the Snakefile lies, for folders that are no clone: `snakemake -s $(suite snakefile) --cores 8 all_tables`."
    command("snakefile", _snakefile, about)


def _snakefile(planned: plan.Plan, options: argparse.Namespace) -> str:
    return str(SNAKEFILE)


def _refresh(planned: plan.Plan, options: argparse.Namespace) -> tuple[str, int]:
    table = planned.table(options.table).name if options.table else None
    if options.cores is not None and options.cores < 1:
        raise UserError(f"--cores {options.cores}: a whole number, 1 or more")
    work = refresh.find(planned, options.directory, table)
    if not work.again:
        return f"nothing is stale at scale {planned.scale.name}", 0
    lines = tabulate(
        [[name, why[0] + (f" (and {len(why) - 1} more)" if why[1:] else "")] for name, why in work.again.items()], tablefmt="plain"
    )
    if options.cores is None:
        return f"{lines}\n{len(work.again)} files to make again; `suite refresh --cores N`, with the same options, does it", 0
    command = [sys.executable, "-m", "snakemake", *words(planned, options, work)]
    done = subprocess.run(command, env=_environment(), check=False)
    return ("refreshed" if done.returncode == 0 else f"not refreshed; this is what was run: {shlex.join(command)}"), done.returncode


def words(planned: plan.Plan, options: argparse.Namespace, work: refresh.Refresh) -> list[str]:
    """What Snakemake is told: the same plan, the same folder, and what to make again."""
    settings = [f"scale={planned.scale.name}"]
    settings += [f"data_root={options.data_root}"] if options.data_root else []
    settings += [f"seeds=[{','.join(map(str, options.seeds))}]"] if options.seeds else []
    place = ["--snakefile", str(SNAKEFILE), "--directory", str(options.directory), "--cores", str(options.cores)]
    return [*place, *work.words, "--config", *settings]


def _environment() -> dict[str, str]:
    """With the suite on the path, so that Snakemake finds its console."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(config.ROOT), os.environ.get("PYTHONPATH")]))}
