"""How fast this device trains: `python -m methods.probe --out results/bench/probe.json`, a minute or so.

Times real training steps (the paper's method, PGD with a few steps) of networks of different shape and width, and one whole training of a
single batch, which shows what a run costs besides its steps. `python -m workflow.suite cost` fits its model to these times.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from methods.core import settings
from methods.core.errors import UserError
from methods.core.files import write_json
from methods.data.load import load
from methods.distributed.world import ALONE
from methods.runtime.device import device as chosen_device
from methods.runtime.provenance import provenance
from methods.train import run
from methods.training.optim import optimizer
from methods.training.precision import require_units
from methods.training.registry import load_method
from methods.training.step import step

STEPS = 3  # of the attack
PASSES = 2 * STEPS - 1 + 3  # forward or gradient passes of a training step
# arch, width, batch; narrow networks show what calls cost, wide ones what multiplications do
POINTS = {
    "cpu": [("rn18", 0.125, 32), ("rn34", 0.125, 32), ("rn50", 0.125, 32), ("rn18", 0.25, 64), ("rn18", 0.5, 16), ("rn34", 1, 4)],
    "cuda": [("rn18", 0.125, 32), ("rn34", 0.125, 256), ("rn18", 1, 128), ("rn34", 1, 256), ("rn50", 1, 128)],
}


def spec_of(arch: str, width: float, batch: int, compute: str = "fp32") -> dict[str, Any]:
    """A run of one step."""
    return {
        "method": "binary_subnet",
        "dataset": "cifar10",
        "data": {"source": "sample", "train": batch, "val": 1},
        **{"arch": arch, "width": width, "lbn": True, "bn_affine": False, "normalize": True, "head_bias": False},
        **{"precision": "binary", "sparsity": 0.9, "p": 0.1, "init": {"weights": "binary", "scores": "uniform", "a": 0.01}},
        "eps": "8/255",
        "attack": {"name": "pgd", "steps": STEPS, "step": 0.25, "start": "uniform", "pick": "worst", "bn": "train"},
        "validate": {"steps": 1, "step": 0.25},
        "train": {
            **{"optimizer": "sgd", "lr": 0.1, "momentum": 0.9, "weight_decay": 5e-4},
            **{"schedule": "cosine", "epochs": 1, "warmup": 0, "batch": batch, "compute": compute},
        },
        "seed": 1,
    }


def step_seconds(spec: dict[str, Any], device: torch.device, repeats: int) -> float:
    """Median time of a training step; the first is not counted."""
    data = load("cifar10", source="sample", train=spec["data"]["train"], val=1)
    method = load_method(spec["method"])(spec, data, device=device)
    method.optimizer = optimizer(method.trainables(), spec["train"])
    batch = next(iter(data.train.batches(batch=spec["train"]["batch"], device=device)))
    times = []
    for number in range(repeats + 1):
        started = time.perf_counter()
        step(method, batch, number, 0, ALONE)
        if device.type == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - started)
    return statistics.median(times[1:])


def formats(device: torch.device) -> list[str]:
    """The number formats that this device computes in by itself."""
    try:
        require_units({"compute": "bf16"}, device.type)
    except UserError:
        return ["fp32"]
    return ["fp32", "bf16"]


def startup_seconds(one: float) -> float:
    """What a whole training of one step takes beyond the step; of two, since the first also imports."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("first", "second"):
            started = time.perf_counter()
            run(spec_of(*POINTS["cpu"][0]), Path(folder) / name, None)
            seconds = time.perf_counter() - started
    return max(0.0, seconds - one)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m methods.probe", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--repeats", type=int, default=3, help="timed steps per network; default 3")
    parser.add_argument("--threads", type=int, default=1, help="of the CPU; default 1, as Snakemake gives to a job")
    options = parser.parse_args(arguments)
    try:
        if min(options.repeats, options.threads) < 1:
            raise UserError(f"--repeats {options.repeats} --threads {options.threads}: both are at least 1")
        torch.set_num_threads(options.threads)
        os.environ[settings.ENGINE] = "dense"  # what the cost model counts
        device = chosen_device()
        points: list[dict[str, Any]] = []
        for compute in formats(device):
            for arch, width, batch in POINTS[device.type]:
                seconds = step_seconds(spec_of(arch, width, batch, compute), device, options.repeats)
                point = {"dataset": "cifar10", "arch": arch, "width": width, "batch": batch, "passes": PASSES, "seconds": seconds}
                points.append(point | {"compute": compute})
                print(f"{arch}, width {width}, batch {batch}, {compute}: {seconds:.3f} s per step of {PASSES} passes", flush=True)
        startup = startup_seconds(points[0]["seconds"])
        print(f"{startup:.2f} s per run besides its steps")
        write_json(options.out, {"points": points, "startup": startup, "provenance": provenance(device)})
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
