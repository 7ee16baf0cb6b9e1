"""The one patch of Snakemake: what stands between its decision to run and its look at which files are there.

What it does. `workflow.execute`, which Snakemake calls once when all settings are known, is replaced on the workflow object by a function
that first refuses names that no rule has (`targets`) and folders that cannot be written to (`places`), forgives the locks and marks of a
killed Snakemake (`leftovers`), marks results whose checksums are wrong as not made (`damage`), puts the time stamps of a
clone in order (`times`), and afterwards tells a full disk from other failures. Then it calls the original.

Why a patch. All of this has to come before the DAG of jobs is built, since the DAG decides by files and marks what to make, and only where
something will really run: a dry run must not touch anything but the time stamps of a clone. Snakefiles are read before Snakemake knows
whether it is a dry run; `onstart:` comes after the DAG; plugins (executor, scheduler, logger) see jobs, which is later still.

What it relies on is listed in `relied_on` and checked at every start, so that another Snakemake is refused with a clear message; tests
look at Snakemake's source for the rest.
"""

import contextlib
import errno
import functools
import inspect
import logging
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from methods.core.errors import UserError
from workflow.suite.jobs import damage, leftovers, places, targets, times
from workflow.suite.planning import config
from workflow.suite.planning.plan import Plan

LITTLE = 512  # MB; with less room than this, the failure of a job may come from the disk


def around(workflow: Any, plan: Plan, *, logger: logging.Logger, failure: type[Exception]) -> Callable[..., Any]:
    """`workflow.execute` of Snakemake, with all of that seen to; `failure` is Snakemake's exception that is printed as one message."""
    if missing := list(relied_on(workflow)):
        raise UserError(
            f"this Snakemake is not the one that workflow/suite/jobs/snakemake_patch.py was written for: {'; '.join(missing)}."
            " Install the version of requirements.txt, or bring the patch up to date"
        )
    execute, folder = workflow.execute, Path()
    logging.raiseExceptions = False  # a log that cannot be written should not drown what is said on the terminal

    def clean() -> None:
        damaged = dict(damage.find(plan, folder))
        for name in leftovers.clean(plan, folder, damaged):
            logger.info(f"{name}: was finished though its Snakemake was killed; kept")
        for name in damaged:
            leftovers.unfinished(folder, name)
        for message in damage.told(damaged.values()):
            logger.warning(message)
        times.repair(plan, folder)

    @functools.wraps(execute)
    def wrapped(*arguments: Any, executor_plugin: Any, **keywords: Any) -> Any:
        go = functools.partial(execute, *arguments, executor_plugin=executor_plugin, **keywords)
        settings = executor_plugin.common_settings
        try:
            targets.check(workflow.dag_settings.targets, rules=[rule.name for rule in workflow.rules], scales=config.names("scales"))
        except UserError as error:
            raise failure(str(error)) from None
        if settings.dryrun_exec or settings.touch_exec:  # only tells
            for message in damage.told(error for _, error in damage.find(plan, folder)):
                logger.warning(message)
            with contextlib.suppress(OSError):  # stamps alone, and proven ones: else it would tell of jobs that a real start does not do
                times.repair(plan, folder)
            workflow.dag_settings.force_incomplete = True
            return go()
        try:
            places.check(folder, plan.scale.name)
            with leftovers.at_work(folder, clean) as alone:
                if alone:  # then what is marked as being made is not: as --rerun-incomplete
                    workflow.dag_settings.force_incomplete = True
                return go()
        except UserError as error:
            raise failure(str(error)) from None
        except KeyboardInterrupt:  # before jobs run, or for the second time; Snakemake itself minds the first while they do
            raise failure("stopped as you asked; what was finished is kept, and the same command goes on from there") from None
        except OSError as error:
            raise failure(about_the_disk(folder, error) or str(error)) from None
        except failure as error:
            if about := about_the_disk(folder, error):
                logger.error(about)
            raise

    return wrapped


def relied_on(workflow: Any) -> Iterator[str]:
    """What is not as the patch needs it, of Snakemake's workflow object."""
    execute = getattr(workflow, "execute", None)
    if not callable(execute):
        yield "Workflow.execute is gone"
    elif "executor_plugin" not in inspect.signature(execute).parameters:
        yield "Workflow.execute is not given executor_plugin"
    settings = getattr(workflow, "dag_settings", None)
    if settings is not None and not hasattr(settings, "force_incomplete"):  # none where nothing can run, as under --lint
        yield "Workflow.dag_settings.force_incomplete (--rerun-incomplete) is gone"
    if settings is not None and not hasattr(settings, "targets"):
        yield "Workflow.dag_settings.targets is gone"
    if not hasattr(workflow, "rules"):
        yield "Workflow.rules is gone"
    if not hasattr(workflow, "is_main_process"):
        yield "Workflow.is_main_process is gone"


def about_the_disk(folder: Path, error: Exception) -> str | None:
    """What to say where a full disk is, or may be, behind a failure."""
    place, kept = folder.resolve(), "everything that was finished is kept; make room and run the same command again"
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"The disk of {place} is full ({error}); {kept}."
    free = shutil.disk_usage(place).free // 2**20
    return f"The disk of {place} has {free} MB left, which may be why; {kept}." if free < LITTLE else None
