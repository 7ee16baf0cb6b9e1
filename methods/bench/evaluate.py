"""How fast the evaluation is beside a plain call of the library: `python -m methods.bench.evaluate [--out FILE]`.

Trains a narrow network for a moment on the shipped CIFAR-10 sample, then evaluates the same block by turns with
`AutoAttack(...).run_standard_evaluation` and with this evaluation, in one process. Reports examples per second of both, the ratio,
and whether they gave the same answer for every example; answers that differ are exit code 1. Three cases: the network as one of this
suite, as any module (nothing folded), and as any module on images that withstand every attack, where no work can be spared.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from msgspec import structs
from torch import Tensor

from methods.attacks.pgd import loss_and_sign, project
from methods.core import eval_spec
from methods.core.errors import UserError
from methods.core.eval_spec import EvalSpec
from methods.core.files import write_json
from methods.data.load import Data, load
from methods.evaluation import attacked_net
from methods.evaluation.block import attack_block, plain_block
from methods.evaluation.observer import Observer
from methods.networks.resnet import Net, build
from methods.runtime.device import device as chosen_device
from methods.runtime.provenance import provenance

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


def compare(net: Net, x: Tensor, y: Tensor, spec: EvalSpec, *, fast: bool, repeats: int) -> dict[str, Any]:
    """Time the library and this project by turns on one block."""
    seed, plain_times, our_times = spec.block_seed(0), [], []
    for turn in range(repeats):
        runs = {
            "plain": lambda: plain_block(net, x, y, spec=spec, seed=seed).tolist(),
            "ours": lambda: attacked(net, x, y, spec, fast=fast, seed=seed),
        }
        answers, times = {}, {}
        for name in list(runs)[:: 1 if turn % 2 == 0 else -1]:  # by turns also who is first
            started = time.perf_counter()
            answers[name] = runs[name]()
            times[name] = time.perf_counter() - started
        plain_times.append(times["plain"])
        our_times.append(times["ours"])
    broken, robust = answers["ours"], answers["plain"]
    ratios = [a / b for a, b in zip(plain_times, our_times, strict=True)]
    return {
        "examples": len(x),
        "eps": spec.eps,
        "clean": sum(b != "clean" for b in broken),
        "robust": sum(b == "none" for b in broken),
        "disagreements": sum((b == "none") != r for b, r in zip(broken, robust, strict=True)),
        "plain_examples_per_second": [round(len(x) / t, 3) for t in plain_times],
        "our_examples_per_second": [round(len(x) / t, 3) for t in our_times],
        "ratio": {"median": statistics.median(ratios), "min": min(ratios), "max": max(ratios), "n": len(ratios)},
    }


def attacked(net: Net, x: Tensor, y: Tensor, spec: EvalSpec, *, fast: bool, seed: int) -> list[str]:
    """Our answers on one block."""
    with attacked_net.attacked(net, fast=fast) as frozen:
        return attack_block(frozen, x, y, spec=spec, seed=seed, observer=Observer())


def cases(net: Net, data: Data, spec: EvalSpec, *, repeats: int, device: torch.device) -> dict[str, dict[str, Any]]:
    """Each case by name, on the first examples of the test set."""
    batch = next(iter(data.test.batches(batch=spec.count(len(data.test)))))
    net, x, y = net.to(device), batch.x.to(device), batch.y.to(device)
    breakable = {
        "network of this suite": compare(net, x, y, spec, fast=True, repeats=repeats),
        "any module": compare(net, x, y, spec, fast=False, repeats=repeats),
    }
    # The network's own answers as labels and next to no radius: every image stays.
    with torch.no_grad():
        answers = net(x).argmax(1)
    harmless = structs.replace(spec, eps="1/1000000")
    return breakable | {"any module, nothing breaks": compare(net, x, answers, harmless, fast=False, repeats=repeats)}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m methods.bench.evaluate", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--arch", default="rn18")
    parser.add_argument("--width", type=float, default=0.25, help="factor on the channel counts; default 0.25")
    parser.add_argument("--epochs", type=int, default=2, help="training epochs on the sample; default 2")
    parser.add_argument("--examples", type=int, default=100, help="test images; default 100")
    parser.add_argument("--repeats", type=int, default=3, help="turns of both; default 3")
    parser.add_argument("--eps", default="2/255", help="radius; default 2/255, where such a network is robust on some images")
    parser.add_argument("--standard", action="store_true", help="the standard AutoAttack instead of a reduced one")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write all of it here as JSON")
    options = parser.parse_args(arguments)
    try:
        attack = "standard" if options.standard else REDUCED
        spec = eval_spec.parse({"attack": attack, "eps": options.eps, "examples": options.examples, "block": options.examples})
        data, device = load("cifar10", source="sample"), chosen_device()
        net = quick_net(data, arch=options.arch, width=options.width, epochs=options.epochs, eps=spec.radius)
        compared = cases(net, data, spec, repeats=options.repeats, device=device)
        report = {"bench": "evaluate", "arch": options.arch, "width": options.width, "data": data.label, "spec": spec.to_json()}
        report |= {"cases": compared, "provenance": provenance(device)}
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for name, case in compared.items():
        ratio = case["ratio"]
        print(
            f"{name}: {ratio['median']:.2f}x as fast as a plain call (min {ratio['min']:.2f}, max {ratio['max']:.2f}, n {ratio['n']});"
            f" {case['robust']} of {case['examples']} robust, {case['disagreements']} answers differ"
        )
    if options.out:
        write_json(options.out, report)
    return 1 if any(case["disagreements"] for case in compared.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
