"""How much faster training is in bfloat16: `python -m methods.bench.precision --out FILE`.

Real optimiser steps, by turns in one process, in float32 and in bfloat16 (`train.compute`), of dense adversarial training and of the
paper's method; both on dense convolutions, whatever SUITE_ENGINE says. Only ratios are claimed. Where a CPU has no bfloat16 units, what is
measured is the price of imitating them, and the record says so.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import torch

from methods.core import settings
from methods.core.errors import UserError
from methods.core.files import write_json
from methods.core.run_spec import merge
from methods.data.load import load_of
from methods.distributed.world import ALONE
from methods.runtime.device import device as chosen_device
from methods.runtime.provenance import provenance
from methods.training.method import Method
from methods.training.optim import optimizer
from methods.training.precision import has_units, require_units
from methods.training.registry import load_method, load_recipe
from methods.training.step import step

METHODS = ("at", "binary_subnet")
FORMATS = ("fp32", "bf16")


def spec_of(name: str, arch: str, batch: int, width: float, steps: int, compute: str) -> dict[str, Any]:
    """A run of one step: the method's own recipe on a few images of the shipped sample."""
    here = {
        **{"method": name, "dataset": "cifar10", "eps": "8/255", "seed": 1, "arch": arch, "width": width},
        **{"data": {"source": "sample", "train": batch, "val": 1}, "attack": {"steps": steps}},
        "train": {"batch": batch, "compute": compute},
    }
    return merge(load_recipe(name)["run"], here)


def prepared(spec: dict[str, Any], device: torch.device) -> Method:
    """A method that is ready for its first step."""
    method = load_method(spec["method"])(spec, load_of(spec), device=device)
    method.optimizer = optimizer(method.trainables(), spec["train"])
    return method


def measure(name: str, arch: str, *, batch: int, width: float, steps: int, repeats: int, device: torch.device) -> dict[str, Any]:
    """Seconds of a step in each format, taken by turns; the first of each is not counted."""
    methods = {compute: prepared(spec_of(name, arch, batch, width, steps, compute), device) for compute in FORMATS}
    images = next(load_of(methods["fp32"].spec).train.batches(batch=batch, seed=1, device=device))
    times: dict[str, list[float]] = {compute: [] for compute in FORMATS}
    for turn in range(repeats + 1):
        for compute, method in methods.items():
            started = time.perf_counter()
            step(method, images, turn, 0, ALONE)
            if device.type == "cuda":
                torch.cuda.synchronize()
            if turn:
                times[compute].append(time.perf_counter() - started)
    ratios = [single / lowered for single, lowered in zip(*times.values(), strict=True)]
    ratio = {"median": statistics.median(ratios), "min": min(ratios), "max": max(ratios), "n": len(ratios)}
    return {"method": name, "arch": arch, "width": width, "batch": batch, "steps": steps, "ratio": ratio, "seconds": times}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m methods.bench.precision", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--archs", nargs="+", default=["rn18", "rn34"])
    parser.add_argument("--batch", type=int, default=64, help="default 64")
    parser.add_argument("--width", type=float, default=1.0, help="factor on the channel counts; default 1")
    parser.add_argument("--steps", type=int, default=3, help="of the attack; default 3, more are more of the same")
    parser.add_argument("--repeats", type=int, default=3, help="turns of both; default 3")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(arguments)
    os.environ[settings.ENGINE] = "dense"
    sizes = {"batch": options.batch, "width": options.width, "steps": options.steps, "repeats": options.repeats}
    results = []
    try:
        device = chosen_device()
        if imitated := device.type == "cpu" and not has_units():
            print("this CPU has no bfloat16 units and imitates them")
        else:
            require_units({"compute": "bf16"}, device.type)
        for name in METHODS:
            for arch in options.archs:
                result = measure(name, arch, **sizes, device=device)
                ratio = result["ratio"]
                spread = f"min {ratio['min']:.2f}, max {ratio['max']:.2f}, n {ratio['n']}"
                print(f"{name} {arch}: a step in bfloat16 is {ratio['median']:.2f}x as fast as in float32 ({spread})", flush=True)
                results.append(result)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    write_json(options.out, {"bench": "precision", "imitated": imitated, "steps": results, "provenance": provenance(device)})
    return 0


if __name__ == "__main__":
    sys.exit(main())
