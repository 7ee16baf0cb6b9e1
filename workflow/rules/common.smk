"""The plan of this invocation, and what every rule shares."""

import os
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.logging import logger

ROOT = Path(workflow.current_basedir).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from methods.core import fingerprint, imports, method_files, paths
from methods.core.errors import UserError
from workflow.suite.cost import limits
from workflow.suite.jobs import environment, forecast, places, snakemake_patch
from workflow.suite.planning import config as settings
from workflow.suite.planning import plan
from workflow.suite.figures import catalogue

# Of a clone; an installed copy has none, and has itself been installed with all that it needs.
ENVIRONMENT = next(map(str, ROOT.glob("environment.yml")), None)


def clear(function, *arguments, **keywords):
    """Call a function of the suite; wrong input becomes one message instead of a traceback."""
    try:
        return function(*arguments, **keywords)
    except UserError as error:
        raise WorkflowError(str(error)) from None


# A logger plugin may have loaded the suite before this line: that of another place than this Snakefile's, if that is the installed one.
if settings.ROOT != ROOT:
    raise WorkflowError(
        f"this Snakefile is of {ROOT}, but the suite of {settings.ROOT} is installed;"
        " `pip install --no-deps -e .` in the former, or use the Snakefile of the latter (`suite snakefile`)"
    )

SUITE = clear(settings.load_suite, config)
PLAN = clear(plan.load, SUITE.scale, data_root=SUITE.data_root, seeds=SUITE.seeds)

# Jobs of a cluster parse this file too; they are not to look after the folder.
if workflow.is_main_process:
    workflow.execute = clear(
        snakemake_patch.around, workflow, PLAN, logger=logger, failure=WorkflowError
    )

os.environ.update(
    environment.of_jobs(
        SUITE,
        PLAN.scale,
        root=ROOT,
        python=Path(sys.executable),
        present=os.environ,
    )
)

# All that a number may depend on: a report has to say which of its numbers are stale.
METHODS = [
    str(path)
    for path in fingerprint.counted(method_files.located(settings.ROOT), settings.ROOT)
]

# What others measured stands beside the paper's numbers.
OTHERS_MEASURED = [str(path) for path in sorted({other.path for other in PLAN.others})]

# What time limits are computed for; no rule's params know of it, so that naming another device makes nothing again.
DEVICE = clear(limits.device, SUITE, PLAN.scale)
clear(limits.require_room, [run.spec for run in PLAN.runs.values()], DEVICE)


wildcard_constraints:
    dataset="[a-z0-9]+",
    source="[a-z-]+",
    run="[a-z0-9_.-]+\\.[0-9a-f]{12}",
    evaluation="[0-9a-f]{12}",
    k="[0-9]+",
    n="[0-9]+",
    norm="Linf|L2",
    scale="[a-z0-9_]+",
    table="[a-z0-9_]+",
    figure="[a-z0-9_]+",
    row="[a-z0-9-]+",


def planned(run):
    """A Run of this plan by its folder name."""
    if run not in PLAN.runs:
        raise WorkflowError(
            f"no Run is called '{run}' at scale '{PLAN.scale.name}'; `python -m workflow.suite plan` lists them"
        )
    return PLAN.runs[run]


def evaluated(run, evaluation):
    """The planned evaluation of a Run."""
    chosen = PLAN.evaluations.get(planned(run).name)
    if chosen is None or chosen.id != evaluation:
        raise WorkflowError(
            f"no evaluation {evaluation} of '{run}' is planned at scale '{PLAN.scale.name}'"
        )
    return chosen


def data_of(run):
    """The manifest of the data that a Run trains on.

    One that is written again says the same: data are verified by their hashes, and no training is older than them. A Run that came
    trained, by a clone or an archive, does without: else the data of other Runs, when they are verified, would train it again.
    """
    manifest = paths.data_manifest(*plan.manifest_key(planned(run)))
    came = Path(paths.train_manifest(run)).is_file() and not Path(manifest).is_file()
    return [] if came else ancient(manifest)


def train_needs(run, attempt):
    """Processes, GPUs, minutes and megabytes of a training."""
    item, spec = planned(run), planned(run).spec
    processes = limits.processes(item, SUITE, PLAN.scale)
    return {
        "processes": processes,
        "gpu": processes * PLAN.scale.require_gpu,
        "runtime": limits.train_minutes(item, DEVICE, SUITE, attempt),
        "mem_mb": processes
        * limits.megabytes(
            spec, PLAN.scale, attempt, images=spec["train"]["batch"] // processes
        ),
    }


def evaluate_needs(run, evaluation, attempt):
    """Minutes and megabytes of one shard of an evaluation."""
    item, chosen = planned(run), evaluated(run, evaluation)
    return {
        "runtime": limits.evaluate_minutes(item, chosen, DEVICE, SUITE, attempt),
        "mem_mb": limits.megabytes(
            item.spec, PLAN.scale, attempt, images=chosen.spec["block"]
        ),
    }


def curve_needs(run, attempt):
    """Minutes and megabytes of a security curve: those of a shard of the Run's evaluation, which attacks for longer."""
    if planned(run).name not in PLAN.evaluations:
        raise WorkflowError(
            f"'{run}' is no network of a table; it has no security curve"
        )
    return evaluate_needs(run, PLAN.evaluations[run].id, attempt)


def same_scale(scale):
    """Refuse a target of another scale than the one this invocation plans."""
    if scale != PLAN.scale.name:
        raise WorkflowError(
            f"a target of scale '{scale}' was asked for, but the plan is of scale '{PLAN.scale.name}';"
            f" add --config scale={scale} (allowed: {', '.join(settings.names('scales'))})"
        )


def evaluations(table=None, row=None):
    """The merged evaluations behind a table, a row of it, or everything."""
    runs = clear(PLAN.final_runs, table, row)
    return [paths.evaluation(run, PLAN.evaluations[run].id) for run in runs]


def of_table(wildcards):
    """The evaluations that a table, or one row of it, shows."""
    same_scale(wildcards.scale)
    return evaluations(wildcards.table, wildcards.get("row"))


def of_figure(wildcards):
    """The files that a figure is drawn from."""
    same_scale(wildcards.scale)
    return clear(catalogue.find, wildcards.figure).inputs(PLAN)


def behind(*modules):
    """The code that modules of the suite reach, as inputs, so that an edit shows in what they make."""
    return [
        str(path) for path in imports.behind(*(f"workflow.suite.{m}" for m in modules))
    ]


def at_start():
    """Called with all jobs known and none begun: refuse what none of them could do, and tell the console what is ahead."""
    jobs = forecast.jobs(workflow.dag)
    gpu = PLAN.scale.require_gpu and not SUITE.allow_cpu
    clear(
        environment.check,
        os.environ,
        python=Path(sys.executable),
        # On the login node of a cluster there may be none, and need not.
        gpu=gpu and forecast.computes(jobs) and workflow.local_exec,
        lowered=workflow.local_exec * forecast.lowered(PLAN, jobs),
    )
    clear(
        places.check_data,
        SUITE.data_root,
        settings.load_suite().data_root,
        [job.wildcards["source"] for job in jobs if job.rule == "data" and job.needed],
    )
    ahead = forecast.of(PLAN, DEVICE, jobs)
    logger.info(
        f"{len(ahead.cells)} cells of tables at scale {PLAN.scale.name}",
        extra={"forecast": ahead},
    )
