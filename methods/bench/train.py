"""Speed of the training step against a plain one: `python -m methods.bench.train --out FILE`.

Both steps (methods/bench/steps.py) are checked to produce the same adversarial batch, batch-norm statistics and scores, in double
precision (in single precision an attack amplifies rounding), then timed by turns in one process; only ratios are claimed. The share of the
matrix-product peak counts direct convolution, so that kernels which need fewer multiplications can exceed it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

import torch

from methods.attacks.pgd import mode
from methods.bench.steps import batch, steps
from methods.core.files import write_json
from methods.networks.resnet import Net
from methods.runtime.provenance import provenance


def largest_deviation(arch: str, size: int, width: float = 1.0) -> dict[str, float]:
    """Largest differences between the two steps after one step, in double precision."""
    plain, lean = steps(arch, torch.float64, width)
    x, y, u = batch(size, torch.float64)
    adv = (plain(x, y, u) - lean(x, y, u)).abs().max().item()
    pairs = zip(plain.net.norms(), lean.net.norms(), strict=True)
    norms = max((a.running_var - b.running_var).abs().max().item() / a.running_var.abs().max().item() for a, b in pairs)
    moved = zip(plain.scores(), lean.scores(), strict=True)
    return {"adversarial": adv, "batch_norm": norms, "scores": max((a - b).abs().max().item() / a.abs().max().item() for a, b in moved)}


def gemm_peak(seconds: float = 1.0) -> float:
    """This machine's matrix-product speed, in FLOP/s."""
    a = torch.randn(2048, 2048)
    a @ a
    count, started = 0, time.perf_counter()
    while time.perf_counter() - started < seconds:
        a @ a
        count += 1
    return count * 2 * 2048**3 / (time.perf_counter() - started)


def forward_flops(net: Net) -> int:
    """Multiply-adds of one image, times two."""
    total, hooks = [], []
    for _, conv in net.convs():
        hooks.append(conv.register_forward_hook(lambda m, _, out: total.append(2 * m.weight[0].numel() * out[0].numel())))
    with torch.no_grad(), mode(net, training=False):
        net(torch.zeros(1, 3, 32, 32))
    for hook in hooks:
        hook.remove()
    return sum(total)


def measure(arch: str, size: int, repeats: int) -> dict:
    """Times of both steps by turns, and what follows from them."""
    deviation = largest_deviation(arch, 2)
    plain, lean = steps(arch, torch.float32)
    flops = forward_flops(lean.net)
    x, y, u = batch(size, torch.float32)
    lean(x, y, u)
    times: dict[str, list[float]] = {"plain": [], "lean": []}
    for _ in range(repeats):
        for name, step in (("plain", plain), ("lean", lean)):
            started = time.perf_counter()
            step(x, y, u)
            times[name].append(time.perf_counter() - started)
    ratios = [p / q for p, q in zip(times["plain"], times["lean"], strict=True)]
    # Convolution work of a lean step: ten forward, nine input-gradient, then forward and both gradients.
    work = 22 * flops * size
    return {
        "arch": arch,
        "batch": size,
        "deviation": deviation,
        "ratio": {"median": statistics.median(ratios), "min": min(ratios), "max": max(ratios), "n": len(ratios)},
        "seconds": times,
        "share_of_gemm_peak": work / statistics.median(times["lean"]) / gemm_peak(),
    }


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m methods.bench.train", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--archs", nargs="+", default=["rn34", "rn18"])
    parser.add_argument("--batch", type=int, default=128, help="default 128; the smaller it is, the more the plain step's sorting weighs")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(arguments)
    results = [measure(arch, options.batch, options.repeats) for arch in options.archs]
    for result in results:
        ratio = result["ratio"]
        print(
            f"{result['arch']}, batch {result['batch']}: {ratio['median']:.2f}x as fast as the plain step"
            f" (min {ratio['min']:.2f}, max {ratio['max']:.2f}, n {ratio['n']}); {100 * result['share_of_gemm_peak']:.0f} % of the GEMM"
            f" peak; largest deviations {json.dumps(result['deviation'])}"
        )
    write_json(options.out, {"steps": results, "provenance": provenance(torch.device("cpu"))})
    return 0


if __name__ == "__main__":
    sys.exit(main())
