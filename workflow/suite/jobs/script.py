"""What the scripts of cheap rules share: the plan of the invocation, a log, and errors without tracebacks."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from methods.core.errors import UserError
from workflow.suite.planning import config, plan


def run(snakemake: Any, make: Callable[[plan.Plan], object]) -> None:
    """Call `make` with the plan and log what it returns; wrong input ends the job with one line, in the log and on stderr."""
    with Path(snakemake.log[0]).open("w", encoding="utf-8") as log:
        try:
            suite = config.load_suite(snakemake.config)
            print(make(plan.load(suite.scale, data_root=suite.data_root, seeds=suite.seeds)), file=log)
        except UserError as error:
            print(f"error: {error}", file=log)
            sys.exit(f"error: {error}")
