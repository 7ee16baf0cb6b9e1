"""How much work is ahead of a run, told to the console once Snakemake knows its jobs: seconds by the cost model, and cells of tables."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from methods.core import paths
from workflow.suite.cost import work
from workflow.suite.cost.devices import Device
from workflow.suite.planning.plan import Plan

SMALL = 1.0  # seconds that a job takes which computes next to nothing


@dataclass(frozen=True, kw_only=True)
class Job:
    """A job of Snakemake's plan: its number, rule and wildcards, what it makes, and whether it has to run."""

    number: int
    rule: str
    wildcards: Mapping[str, str]
    outputs: tuple[str, ...]
    needed: bool


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """Job number -> seconds; for each cell that this run makes or shows the jobs that it waits for (none: it is there already); for each
    number that it makes the tables that show it."""

    seconds: Mapping[int, float] = field(default_factory=dict)
    cells: tuple[frozenset[int], ...] = ()
    shown_in: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def jobs(dag: Any) -> list[Job]:
    """The jobs of Snakemake's DAG."""
    return [
        Job(
            number=dag.jobid(job),
            rule=job.rule.name,
            wildcards=dict(job.wildcards_dict),
            outputs=tuple(map(str, job.output)),
            needed=dag.needrun(job),
        )
        for job in dag.jobs
    ]


def computes(ahead: Iterable[Job]) -> bool:
    """Whether something has to be trained or evaluated."""
    return any(job.needed and job.rule in ("train", "evaluate") for job in ahead)


def lowered(plan: Plan, ahead: Iterable[Job]) -> int:
    """How many trainings compute in bfloat16."""
    runs = (plan.runs[job.wildcards["run"]] for job in ahead if job.needed and job.rule == "train")
    return sum(run.spec["train"].get("compute") == "bf16" for run in runs)


def of(plan: Plan, device: Device, ahead: Sequence[Job]) -> Forecast:
    """What the jobs of a run amount to. Only the proportions matter: the console sets them against the time that passes."""
    makers = {name: job for job in ahead for name in job.outputs}
    cells = []
    for cell in plan.cells.values():
        needs = [paths.evaluation(run, plan.evaluations[run].id) for run in cell.runs]
        if needs and all(name in makers for name in needs):
            cells.append(frozenset(makers[name].number for name in needs if makers[name].needed))
    return Forecast(
        seconds={job.number: seconds(plan, device, job) for job in ahead if job.needed},
        cells=tuple(cells),
        shown_in={name: tables for name, tables in _shown_in(plan).items() if name in makers and makers[name].needed},
    )


def _shown_in(plan: Plan) -> dict[str, tuple[str, ...]]:
    """Evaluation -> the tables that show it."""
    tables: dict[str, dict[str, None]] = {}
    for cell in plan.cells.values():
        for run in cell.runs:
            name = paths.evaluation(run, plan.evaluations[run].id)
            tables.setdefault(name, {})[paths.table(plan.scale.name, cell.table, "md")] = None
    return {name: tuple(users) for name, users in tables.items()}


def seconds(plan: Plan, device: Device, job: Job) -> float:
    """Of one job, were nothing of it done yet."""
    run = plan.runs.get(job.wildcards.get("run", ""))
    if run is not None and job.rule == "train":
        return device.training(run.spec)
    if run is not None and job.rule == "evaluate" and (chosen := plan.evaluations.get(run.name)):
        return device.startup + device.seconds(work.evaluation(run.spec, chosen.spec, right=0.7, robust=0.4)) / chosen.shards
    return SMALL
