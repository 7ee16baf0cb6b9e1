"""How far a scale is, as text: finished tables in a line each, a finished scale in a sentence."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from tabulate import tabulate

from methods.core import paths
from workflow.suite.planning.plan import Plan
from workflow.suite.results import standing, status
from workflow.suite.results.standing import CELLS, STAGES, Standing

SETTLED = ("done", "not available", "not applicable")  # nothing is to be computed for these


def of_plan(plan: Plan, folder: Path) -> str:
    """The whole text."""
    runs = standing.of_runs(plan, folder)
    counts = {name: standing.of_cells(plan, name, runs) for name in plan.tables}
    if all(map(finished, counts.values())):
        return "\n".join([_sentence(plan, counts, folder), *_unavailable(plan)])
    open_tables = {name: count for name, count in counts.items() if not finished(count)}
    lines = [[name, *(count[key] for key in CELLS)] for name, count in open_tables.items()]
    lines.append(["all", *(sum(count[key] for count in counts.values()) for key in CELLS)])
    parts = [f"scale {plan.scale.name}", tabulate(lines, ["table", *CELLS])]
    parts += [_line(plan, name, count, folder) for name, count in counts.items() if finished(count)]
    return "\n".join([*parts, *_runs(runs), *_unavailable(plan)])


def finished(count: Counter) -> bool:
    """Whether nothing is left to do for a table: there are numbers, and they are up to date."""
    return count["done"] > 0 and sum(count.values()) == sum(count[key] for key in SETTLED)


def _sentence(plan: Plan, counts: Mapping[str, Counter], folder: Path) -> str:
    done, scale, page = sum(count["done"] for count in counts.values()), plan.scale.name, paths.page(plan.scale.name)
    rendered = (folder / page).is_file()
    where = f"{page} has everything" if rendered else f"`snakemake --cores 1 --config scale={scale}` writes {page}"
    return f"Scale {scale} is finished: all {done} cells of {len(counts)} tables are measured; {where}."


def _line(plan: Plan, name: str, count: Counter, folder: Path) -> str:
    report = paths.table(plan.scale.name, name, "md")
    where = report if (folder / report).is_file() else f"`snakemake --cores 1 {report} --config scale={plan.scale.name}` renders it"
    return f"{name}: all {count['done']} cells done, {where}"


def _runs(runs: Mapping[str, Standing]) -> list[str]:
    stages = Counter(item.stage for item in runs.values())
    parts = ["Runs: " + ", ".join(f"{stages[key]} {key}" for key in STAGES)]
    for stage in ("training", "evaluating", "failed", "stopped"):
        parts += [f"{stage}: {run}: {item.note}" for run, item in runs.items() if item.stage == stage]
    why = Counter(item.note for item in runs.values() if item.stage == "stale")
    return parts + [f"stale, {number} runs: {note}" for note, number in why.most_common(5)]


def _unavailable(plan: Plan) -> list[str]:
    return [f"not available, {number} cells: {reason}" for reason, number in status.reasons(plan).most_common()]
