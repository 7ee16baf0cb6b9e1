"""What has to be made again because the code behind it has changed, as words for Snakemake; nothing else is made."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from methods.core import paths
from workflow.suite.planning.plan import Plan
from workflow.suite.results import stale


@dataclass(frozen=True, kw_only=True)
class Refresh:
    """Files to make again and why (file -> reasons), and what for: evaluations, and tables and rows that lack nothing else."""

    again: Mapping[str, Sequence[str]]
    targets: Sequence[str]

    @property
    def words(self) -> list[str]:
        """For Snakemake; what follows from a file that is made again is made again by itself."""
        return [*self.targets, "--forcerun", *self.again]


def find(plan: Plan, folder: Path, table: str | None = None) -> Refresh:
    """What is stale of a plan, or of one table, under a folder."""
    again: dict[str, Sequence[str]] = {}
    numbers: dict[str, str] = {}
    for run in plan.final_runs(table):
        number = paths.evaluation(run, plan.evaluations[run].id)
        if (folder / number).is_file() and (reasons := stale.by_file(plan, run, folder)):
            numbers[run] = number
            again |= {_made(plan, run, name): why for name, why in reasons.items()}
    shown = [page for name in ([table] if table else plan.tables) for page in _rendered(plan, name, numbers.keys(), folder)]
    return Refresh(again=again, targets=[*numbers.values(), *shown])


def _made(plan: Plan, run: str, name: str) -> str:
    """What a rule makes where a file is stale: a shard that is alone is made with its evaluation."""
    chosen = plan.evaluations[run]
    alone = all(evaluation.shards == 1 for evaluation in plan.evaluations.values())
    return paths.evaluation(run, chosen.id) if alone and name == paths.shard(run, chosen.id, 1, 1) else name


def _rendered(plan: Plan, table: str, old: Set[str], folder: Path) -> list[str]:
    """The files of a table and of its rows that were rendered, show something old, and have every number."""
    scale = plan.scale.name
    pages = {paths.table(scale, table, "md"): plan.final_runs(table)}
    pages |= {paths.row(scale, table, row.id, "md"): plan.final_runs(table, row.id) for row in plan.tables[table].rows}
    return [page for page, runs in pages.items() if (folder / page).is_file() and old & set(runs) and _complete(plan, runs, folder)]


def _complete(plan: Plan, runs: Sequence[str], folder: Path) -> bool:
    return all((folder / paths.evaluation(run, plan.evaluations[run].id)).is_file() for run in runs)
