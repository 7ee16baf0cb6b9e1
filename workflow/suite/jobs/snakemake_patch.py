"""Starting Snakemake in a folder in any state: after a killed one, with damaged files, on a full disk.

Snakemake has no hook between "this will really run" and "which files are there", so its own call that stands there is wrapped.
"""

import errno
import functools
import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from workflow.suite.jobs import damage, leftovers
from workflow.suite.planning.plan import Plan

LITTLE = 512  # MB; with less room than this, the failure of a job may come from the disk


def around(workflow: Any, plan: Plan, *, logger: logging.Logger, failure: type[Exception]) -> Callable[..., Any]:
    """`workflow.execute` of Snakemake, with all of that seen to; `failure` is Snakemake's exception that is printed as one message."""
    execute, folder = workflow.execute, Path()
    logging.raiseExceptions = False  # a log that cannot be written should not drown what is said on the terminal

    def clean() -> None:
        damaged = dict(damage.find(plan, folder))
        for name in leftovers.clean(plan, folder, damaged):
            logger.info(f"{name}: was finished though its Snakemake was killed; kept")
        for name, message in damaged.items():
            logger.warning(message)
            leftovers.unfinished(folder, name)

    @functools.wraps(execute)
    def wrapped(*arguments: Any, executor_plugin: Any, **keywords: Any) -> Any:
        go = functools.partial(execute, *arguments, executor_plugin=executor_plugin, **keywords)
        settings = executor_plugin.common_settings
        if settings.dryrun_exec or settings.touch_exec:  # only tells
            for _, message in damage.find(plan, folder):
                logger.warning(message)
            workflow.dag_settings.force_incomplete = True
            return go()
        try:
            with leftovers.at_work(folder, clean) as alone:
                if alone:  # then what is marked as being made is not: as --rerun-incomplete
                    workflow.dag_settings.force_incomplete = True
                return go()
        except OSError as error:
            raise failure(about_the_disk(folder, error) or str(error)) from None
        except failure as error:
            if about := about_the_disk(folder, error):
                logger.error(about)
            raise

    return wrapped


def about_the_disk(folder: Path, error: Exception) -> str | None:
    """What to say where a full disk is, or may be, behind a failure."""
    place, kept = folder.resolve(), "everything that was finished is kept; make room and run the same command again"
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"The disk of {place} is full ({error}); {kept}."
    free = shutil.disk_usage(place).free // 2**20
    return f"The disk of {place} has {free} MB left, which may be why; {kept}." if free < LITTLE else None
