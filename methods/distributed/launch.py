"""Start the processes of one run, with the machinery of torchrun but one message and one exit code, as if it were one process."""

from __future__ import annotations

import os
import sys
import uuid

SAVING_SECONDS = 600  # what a stopped run has for its step and its state before it is killed
STOPPED = 75


def launch(count: int, module: str, arguments: list[str]) -> int:
    """Run `python -m module` in so many processes; returns the exit code of the first that failed."""
    from torch.distributed.elastic.multiprocessing.api import DefaultLogsSpecs, SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, len(os.sched_getaffinity(0)) // count)))
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=count,
        logs_specs=DefaultLogsSpecs(log_dir=os.devnull),  # else each start leaves empty folders behind
        run_id=uuid.uuid4().hex,
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",  # any free port
        local_addr="localhost",
        max_restarts=0,
        shutdown_timeout=SAVING_SECONDS,
    )
    try:
        elastic_launch(config, sys.executable)("-m", module, *arguments)
    except ChildFailedError as failed:
        return max(failed.get_first_failure()[1].exitcode, 1)  # a negative one is a signal
    except SignalException:
        return STOPPED
    return 0
