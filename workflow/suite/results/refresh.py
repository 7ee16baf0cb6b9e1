"""What has to be made again because the code behind it has changed, as words for Snakemake; nothing else is made."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from methods.core import paths
from workflow.suite.planning.plan import Plan
from workflow.suite.results import stale


@dataclass(frozen=True, kw_only=True)
class Refresh:
    """Files to make again and why (file -> reasons), and what they are made for: evaluations, and tables that lack nothing else."""

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
    tables = [name for name in ([table] if table else plan.tables) if _complete(plan, name, numbers, folder)]
    return Refresh(again=again, targets=[*numbers.values(), *(paths.table(plan.scale.name, name, "md") for name in tables)])


def _made(plan: Plan, run: str, name: str) -> str:
    """What a rule makes where a file is stale: a shard that is alone is made with its evaluation."""
    chosen = plan.evaluations[run]
    alone = all(evaluation.shards == 1 for evaluation in plan.evaluations.values())
    return paths.evaluation(run, chosen.id) if alone and name == paths.shard(run, chosen.id, 1, 1) else name


def _complete(plan: Plan, table: str, numbers: Mapping[str, str], folder: Path) -> bool:
    """Whether a table was rendered, shows something stale, and has every number."""
    runs = plan.final_runs(table)
    there = all((folder / paths.evaluation(run, plan.evaluations[run].id)).is_file() for run in runs)
    return there and bool(numbers.keys() & set(runs)) and (folder / paths.table(plan.scale.name, table, "md")).is_file()
