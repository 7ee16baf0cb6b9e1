"""Commands about the plan: status, plan, rows, targets, cost, deviations."""

import argparse
from pathlib import Path

from tabulate import tabulate

from methods.core import paths
from methods.core.errors import UserError
from workflow.suite.commands.command import Add
from workflow.suite.planning import config, plan, selection
from workflow.suite.results import standing, status_text


def add(command: Add) -> None:
    """The commands of this module."""
    command("status", _status, "How far every table and Run is: what runs and for how long, what failed and why.")
    cost = command("cost", _cost, "Device-hours and dollars per table and in total, before anything is run.")
    cost.add_argument("--table", help="only this table")
    cost.add_argument("--row", help="only this row of the table")
    cost.add_argument("--price", type=float, metavar="DOLLARS", help="of the device per hour (default: that of devices.yaml)")
    cost.add_argument("--budget", type=float, metavar="HOURS", help="also say which tables so many hours pay for")
    cost.add_argument("--gpu", metavar="NAME", help="a device of workflow/config/devices.yaml, with assumed figures")
    probe = f"what methods.probe measured (default: {paths.bench('probe')} if it is there)"
    cost.add_argument("--probe", type=Path, metavar="FILE", help=probe)
    runs = command("plan", _plan, "Every Run of the plan, and the counts.")
    runs.add_argument("--table", help="only the Runs of this table")
    rows = command("rows", _rows, "Every row with the file that `snakemake --cores N FILE` makes for it.")
    rows.add_argument("--table", help="only the rows of this table")
    about = "The evaluations behind cells, for Snakemake: `snakemake --cores 8 $(... targets 'sp_ratio.*.r99')`."
    targets = command("targets", _targets, about)
    pattern = "table.row.column with * for anything, in the order in which they are wanted"
    targets.add_argument("patterns", nargs="+", metavar="PATTERN", help=pattern)
    command("deviations", _deviations, "Write docs/deviations.md from the recipes: where a method departs from its official code.")


def _status(planned: plan.Plan, options: argparse.Namespace) -> str:
    return status_text.of_plan(planned, options.directory)


def _cost(planned: plan.Plan, options: argparse.Namespace) -> str:
    from workflow.suite.cost import devices
    from workflow.suite.cost import report as cost  # numpy: slow to import, and only needed here

    if options.gpu and options.probe:
        raise UserError("--gpu and --probe are two sources of one figure; give one of them")
    if options.row and not options.table:
        raise UserError(f"--row {options.row}: say of which table with --table")
    for key in ("price", "budget"):
        if getattr(options, key) is not None and not getattr(options, key) >= 0:
            raise UserError(f"--{key} {getattr(options, key)}: a number of 0 or more")
    measured = options.directory / paths.bench("probe")
    suite = config.load_suite()
    if options.gpu:
        device = devices.named(options.gpu)
    elif options.probe or measured.is_file():
        device = devices.probed(options.probe or measured)
    else:
        device = devices.named(suite.gpu if planned.scale.require_gpu else "cpu")
    root = Path(options.data_root) if options.data_root else suite.data_root
    chosen = {"table": options.table, "row": options.row, "price": options.price, "budget": options.budget}
    return cost.report(planned, device, options.directory, **chosen, also=plan.load("demo", data_root=root))


def _plan(planned: plan.Plan, options: argparse.Namespace) -> str:
    final = planned.final_runs(options.table)
    runs = list(dict.fromkeys(run.name for name in final for run in reversed(planned.lineage(name))))
    lines = [f"{name}  {standing.of_run(planned, name, options.directory).stage}" for name in runs]
    cells = [cell for cell in planned.cells.values() if options.table in (None, cell.table)]
    numbers = sum(cell.reported.value is not None for cell in cells)
    lost = sum(cell.unavailable is not None for cell in cells)
    lines.append(
        f"{len(cells)} cells, {numbers} numbers of the paper; {len(final)} distinct final Runs, {len(runs)} trainings"
        f" with their parents; {lost} cells not available"
    )
    return "\n".join(lines)


def _rows(planned: plan.Plan, options: argparse.Namespace) -> str:
    tables = [planned.table(options.table)] if options.table else planned.tables.values()
    lines = [[paths.row(planned.scale.name, table.name, row.id), " | ".join(row.labels)] for table in tables for row in table.rows]
    return tabulate(lines, tablefmt="plain")


def _targets(planned: plan.Plan, options: argparse.Namespace) -> str:
    return "\n".join(selection.targets(planned, options.patterns))


def _deviations(planned: plan.Plan, options: argparse.Namespace) -> str:
    from workflow.suite.planning import deviations

    return str(deviations.write_page(config.ROOT, options.directory))
