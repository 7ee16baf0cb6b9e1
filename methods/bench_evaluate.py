"""How fast the evaluation is beside a plain call of the library: `python -m methods.bench_evaluate [--out FILE]`.

Trains a narrow network for a moment on the shipped CIFAR-10 sample, then evaluates the same block by turns with
`AutoAttack(...).run_standard_evaluation` and with this evaluation, in one process. Reports examples per second of both, the ratio,
and whether they gave the same answer for every example; answers that differ are exit code 1.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

from methods import eval_spec
from methods.atomic import write_json
from methods.attacks import loss_and_sign, project
from methods.autoattack import attack_block, plain_block
from methods.data import Data, load
from methods.device import device as chosen_device
from methods.errors import UserError
from methods.eval_spec import EvalSpec
from methods.library_warnings import Collector
from methods.models import Net, build
from methods.provenance import provenance
from methods.victim import victim

# All four attacks in about the proportions of the standard version, at a tenth of its cost or less.
REDUCED = {"version": "custom", "attacks": list(eval_spec.STANDARD), "apgd_iter": 10, "fab_iter": 10, "square_queries": 200, "targets": 3}


def quick_net(data: Data, *, arch: str, width: float, epochs: int, eps: float) -> Net:
    """A network that is right and robust on some images and not on others: a few epochs against one gradient step."""
    torch.manual_seed(0)
    net = build(arch, classes=data.classes, width=width, bn_affine=True, mean=data.mean, std=data.std)
    optimiser = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    for epoch in range(epochs):
        for batch in data.train.batches(batch=50, seed=0, epoch=epoch, augment="crop_flip"):
            _, sign = loss_and_sign(net, batch.x, batch.y)
            loss = F.cross_entropy(net(project(batch.x + eps * sign, batch.x, eps)), batch.y)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return net.eval()


def compare(net: Net, data: Data, spec: EvalSpec, *, repeats: int, device: torch.device) -> dict[str, Any]:
    """Time the library and this project by turns on the first examples of the test set."""
    batch = next(iter(data.test.batches(batch=spec.count(len(data.test)))))
    x, y = batch.x.to(device), batch.y.to(device)
    net, seed = net.to(device), spec.block_seed(0)
    plain_times, our_times = [], []
    for _ in range(repeats):
        started = time.perf_counter()
        robust = plain_block(net, x, y, spec=spec, seed=seed).tolist()
        middle = time.perf_counter()
        with victim(net) as attacked:
            broken = attack_block(attacked, x, y, spec=spec, seed=seed, warn=Collector())
        plain_times.append(middle - started)
        our_times.append(time.perf_counter() - middle)
    ratios = [a / b for a, b in zip(plain_times, our_times, strict=True)]
    return {
        "examples": len(x),
        "clean": sum(b != "clean" for b in broken),
        "robust": sum(b == "none" for b in broken),
        "disagreements": sum((b == "none") != r for b, r in zip(broken, robust, strict=True)),
        "plain_examples_per_second": [round(len(x) / t, 3) for t in plain_times],
        "our_examples_per_second": [round(len(x) / t, 3) for t in our_times],
        "ratio": round(statistics.median(ratios), 3),
        "ratios": [round(r, 3) for r in ratios],
    }


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m methods.bench_evaluate", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--arch", default="rn18")
    parser.add_argument("--width", type=float, default=0.25, help="factor on the channel counts; default 0.25")
    parser.add_argument("--epochs", type=int, default=2, help="training epochs on the sample; default 2")
    parser.add_argument("--examples", type=int, default=100, help="test images; default 100")
    parser.add_argument("--repeats", type=int, default=3, help="turns of both; default 3")
    parser.add_argument("--eps", default="2/255", help="radius; default 2/255, where such a network is robust on some images")
    parser.add_argument("--standard", action="store_true", help="the standard AutoAttack instead of a reduced one")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the JSON here; default: print it")
    options = parser.parse_args(arguments)
    try:
        attack = "standard" if options.standard else REDUCED
        spec = eval_spec.parse({"attack": attack, "eps": options.eps, "examples": options.examples, "block": options.examples})
        data, device = load("cifar10", source="sample"), chosen_device()
        net = quick_net(data, arch=options.arch, width=options.width, epochs=options.epochs, eps=spec.radius)
        report = {"bench": "evaluate", "arch": options.arch, "width": options.width, "data": data.label, "spec": spec.to_json()}
        report |= compare(net, data, spec, repeats=options.repeats, device=device) | {"provenance": provenance(device)}
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if options.out:
        write_json(options.out, report)
    else:
        print(json.dumps(report, indent=2, sort_keys=True))
    return 1 if report["disagreements"] else 0


if __name__ == "__main__":
    sys.exit(main())
