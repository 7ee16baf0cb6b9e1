"""Which cells and Runs each figure shows: functions of the plan alone, so that Snakemake can ask without loading a plotting library."""

from collections.abc import Callable
from pathlib import Path

from methods.core import paths
from workflow.suite.planning.plan import Cell, Plan
from workflow.suite.results import settings

# RN34-LBN, binary weights, CIFAR-10, r = 0.99, p = 0.1: the network that the paper's mask figures are of, as far as it says.
SUBJECT = "main_comparison.ours.cifar10-binary"
RATIOS = "sp_ratio"
CURVES = tuple((column, row) for column in ("r99", "r5") for row in ("p01", "p05", "p08", "p10"))
COMPARISONS = ("main_comparison", "complete_comparison", "comparison_rn18_rn50")


def subject(plan: Plan) -> str | None:
    """The Run whose masks are shown: the first seed."""
    runs = plan.cells[SUBJECT].runs if SUBJECT in plan.cells else ()
    return runs[0] if runs else None


def of_masks(plan: Plan) -> list[str]:
    run = subject(plan)
    return [paths.train_manifest(run)] if run else []


def of_origin(plan: Plan) -> list[str]:
    run = subject(plan)
    return [paths.train_manifest(run), paths.first_epoch(run)] if run else []


def of_table(table: str) -> Callable[[Plan], list[str]]:
    """The trainings behind a table."""
    return lambda plan: [paths.train_manifest(run) for run in plan.final_runs(table)] if table in plan.tables else []


def curve_runs(plan: Plan) -> dict[tuple[str, str], tuple[str, ...]]:
    """(column, row) of the table of pruning rates -> its Runs, for the eight panels."""
    addresses = {(column, row): f"{RATIOS}.{row}.{column}" for column, row in CURVES}
    return {key: plan.cells[address].runs for key, address in addresses.items() if address in plan.cells}


def of_curves(plan: Plan) -> list[str]:
    return [paths.train_manifest(run) for runs in curve_runs(plan).values() for run in runs]


def of_ratios(plan: Plan) -> list[str]:
    runs = plan.final_runs(RATIOS) if RATIOS in plan.tables else []
    return [paths.evaluation(run, plan.evaluations[run].id) for run in runs]


def of_ranks(plan: Plan) -> list[str]:
    runs = dict.fromkeys(run for name in settings.TABLES if name in plan.tables for run in plan.final_runs(name))
    return [paths.evaluation(run, plan.evaluations[run].id) for run in runs]


def security_runs(plan: Plan, folder: Path) -> dict[str, list[str]]:
    """Norm -> the Runs that have a security curve in it."""
    runs = plan.final_runs()
    return {norm: [run for run in runs if (folder / paths.security_curve(run, norm)).is_file()] for norm in paths.CURVE_NORMS}


def of_security(plan: Plan, folder: Path) -> list[str]:
    return [paths.security_curve(run, norm) for norm, runs in security_runs(plan, folder).items() for run in runs]


def compared(plan: Plan) -> list[Cell]:
    """The cells of the comparisons; one that stands in two tables counts once."""
    cells = {cell.runs: cell for name in COMPARISONS if name in plan.tables for cell in plan.cells_of(name) if cell.runs}
    return list(cells.values())


def of_sizes(plan: Plan) -> list[str]:
    runs = dict.fromkeys(run for cell in compared(plan) for run in cell.runs)
    return [path for run in runs for path in (paths.evaluation(run, plan.evaluations[run].id), paths.train_manifest(run))]
