"""Train one run: `python -m methods.train --spec JSON --out DIR`.

Writes spec.json, history.jsonl, model.safetensors (the deployable network of the best epoch), handover.safetensors where other runs start
from this one, and, last of all, train.json. Killed at any moment and started again, it goes on from its last saved state. Several devices
train it together where torchrun starts it, where SUITE_GPUS_PER_RUN names its data set ({"imagenet100": 4}), or where its batch norms are
per device ('train.bn_devices').
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from methods.core import fingerprint, paths, settings
from methods.core.errors import UserError
from methods.core.options import options_model
from methods.core.run_check import check_method, parse_run
from methods.core.run_spec import processes
from methods.data.load import Data, load_of
from methods.distributed.launch import launch
from methods.distributed.torchrun import first_process, join, launched
from methods.distributed.world import ALONE, World
from methods.formats import imitated
from methods.runtime.provenance import provenance
from methods.runtime.stop import requests
from methods.runtime.stopwatch import Stopwatch
from methods.training.course import Stopped
from methods.training.loop import train
from methods.training.publish import finished, handed_over, publish, remove_halves
from methods.training.registry import load_method, load_recipe
from methods.training.resume import Resume


def parse_spec(text: str) -> dict[str, Any]:
    """The run's spec: complete, without a key that a run or its method does not know."""
    spec = parse_run(text)
    recipe = load_recipe(spec["method"])
    check_method(spec, options_model(recipe), list(recipe.get("phases", ())), source="--spec")
    return spec


def load_data(spec: dict[str, Any], root: Path | None, world: World = ALONE) -> Data:
    # The processes of a run share the cores of their machine.
    workers = max(1, min(8, len(os.sched_getaffinity(0)) // world.size)) if world.size > 1 else None
    return load_of(spec, root=root, workers=workers)


def run(
    spec: dict[str, Any],
    out: Path,
    data_root: Path | None,
    *,
    save_every: float = 300.0,
    wait: float = math.inf,
    stop: Callable[[], bool] = lambda: False,
) -> None:
    """Train, then publish the results; or save the state and raise Stopped when `stop()` turns true."""
    # A GPU, or a number format, that is missing is told before anything is touched.
    imitation = imitated(spec["train"])
    files = fingerprint.of_training(spec["method"])
    started, method_class = time.time(), load_method(spec["method"])
    text = json.dumps(spec, sort_keys=True, separators=(",", ":"))

    def check_stop() -> None:
        if stop():
            raise Stopped("stopped while another process was training this run")

    # The run before the device: who waits for another process of this run must not hold a GPU meanwhile.
    resume = Resume(out / paths.STATE, f"{text} {fingerprint.combined(files)}", wait=wait, waiting=check_stop, writes=first_process())
    world, device = join()
    watch = Stopwatch(device, world.size)
    [done] = world.any(resume.waited and finished(out, spec, files))
    if done:  # by the process that was waited for: one that outlived its Snakemake
        print("finished by another process")
        resume.clear()
        world.leave()
        return
    if world.first:
        remove_halves(out)
    data = load_data(spec, data_root, world)
    method = method_class(spec, data, device=device, parent=handed_over(out, spec.get("parent")))
    method.check_start()
    try:
        outcome = train(method, data, resume=resume, stop=stop, save_every=save_every, watch=watch, world=world)
    except Stopped:
        world.leave()
        raise
    if world.first:
        made_by = {**provenance(device, files), "processes": world.size, "engine": method.engine, "started": started, **watch.read()}
        if imitation:
            made_by["imitated"] = spec["train"]["compute"]
        publish(out, data, outcome, method, made_by)
        resume.clear()
    world.leave()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m methods.train", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--spec", required=True, help="the run, as JSON (python -m workflow.suite show prints it)")
    parser.add_argument("--out", required=True, type=Path, help="folder of the run; a parent run is looked for beside it")
    parser.add_argument("--data-root", type=Path, default=settings.data_root(), help="where data sets lie (default: $SUITE_DATA_ROOT)")
    parser.add_argument(
        "--save-every",
        type=float,
        metavar="SECONDS",
        help="how often the resumable state is saved (default: $SUITE_SAVE_EVERY, else 300)",
    )
    parser.add_argument(
        "--wait",
        type=float,
        default=math.inf,
        metavar="SECONDS",
        help="how long to wait for another process that trains this run (default: as long as it takes)",
    )
    options = parser.parse_args(arguments)
    try:
        spec = parse_spec(options.spec)
        if (count := processes(spec, settings.gpus_per_run())) > 1 and not launched():
            return launch(count, "methods.train", sys.argv[1:] if arguments is None else arguments)
        save_every = settings.save_every() if options.save_every is None else options.save_every
        with requests() as stop:
            run(spec, options.out, options.data_root, save_every=save_every, wait=options.wait, stop=stop)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:  # a full disk, a folder that cannot be written
        where = f"{error.filename or options.out}: {error.strerror or error}"
        print(f"error: {where}; correct that and run the same command again: what was saved is kept", file=sys.stderr)
        return 2
    except Stopped as stopped:
        print(stopped, file=sys.stderr)
        return 75
    return 0


if __name__ == "__main__":
    sys.exit(main())
