"""The environment of jobs: where the code, the interpreter and the data are, whether a GPU is a must, how many train one
Run, whether jobs share a process that has torch loaded, whether a CPU may imitate bfloat16.

None of these changes a result, so none of them stands in a command line or in params, where a change would make
Snakemake run everything again.
"""

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from methods.core import settings
from methods.core.errors import UserError
from workflow.suite.planning.config import Scale, Suite


def check(environ: Mapping[str, str], *, python: Path, gpu: bool, lowered: int) -> None:
    """Refuse what every job would fail at: variables with values that are not allowed, no GPU where this machine's jobs must have one, and
    a processor that cannot compute as the `lowered` trainings do, those in bfloat16, where they are trained on this machine.

    torch is asked in a process of its own, since planning does without it.
    """
    for read in (settings.device, settings.engine, settings.gpus_per_run, settings.imitate_bf16, settings.save_every, settings.warm):
        read(environ)
    if gpu:
        _ask(environ, python, "methods.runtime.device")
    if lowered:
        _ask(environ, python, "methods.formats", "bf16", about=f"{lowered} of the trainings ahead: " if lowered > 1 else "")


def _ask(environ: Mapping[str, str], python: Path, *words: str, about: str = "") -> None:
    asked = subprocess.run([str(python), "-m", *words], env=dict(environ), capture_output=True, text=True, check=False)
    if asked.returncode == 2:
        raise UserError(about + asked.stderr.strip().removeprefix("error: "))


def of_jobs(suite: Suite, scale: Scale, *, root: Path, python: Path, present: Mapping[str, str]) -> dict[str, str]:
    """Variables to set, given those that are `present`."""
    variables = {
        "PYTHONPATH": os.pathsep.join(filter(None, [str(root), present.get("PYTHONPATH")])),
        "PATH": os.pathsep.join(filter(None, [str(python.parent), present.get("PATH")])),
        settings.DATA_ROOT: str(suite.data_root),
    }
    if scale.require_gpu and not suite.allow_cpu:
        variables[settings.DEVICE] = "cuda"
        variables[settings.GPUS_PER_RUN] = json.dumps(dict(suite.gpus_per_run), sort_keys=True)
    if suite.imitate_bf16:
        variables[settings.IMITATE_BF16] = "1"
    if scale.warm:
        variables[settings.WARM] = "1"
    return variables
