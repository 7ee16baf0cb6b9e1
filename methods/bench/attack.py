"""A whole AutoAttack by the sparse engine against a plain call of the library: `python -m methods.bench.attack --out FILE`.

The network has random +-1 weights under random masks, r = 0.99 and p = 0.1; the labels are its own answers, and the radius is one at which
most images withstand everything. `--run` takes a trained network instead, with real labels and its own radius. Both sides attack the same
images of the shipped CIFAR-10 sample, one after the other in one process; seconds are process time on one thread, and time of the clock on
several. What counts for the ratio is how many images withstand: the engine computes sixteen images, one thread's work, in the time of one.
Of the hundreds of an evaluation enough are left to the end; sixteen a thread have to withstand nearly all to show the same.
Answers may differ where an image is on the border: the attacks follow gradients that round otherwise. How many do is told, and for each
the margin (logit of the label, less the largest other one) that the side which broke it reached on the dense network. More than TOLERATED
of the images, or a margin that is not small beside those of the clean images, is exit code 1.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from methods.bench.networks import pruned
from methods.core import eval_spec, paths, sealed
from methods.core.errors import UserError
from methods.core.eval_spec import EvalSpec
from methods.core.files import write_json
from methods.data.load import load
from methods.evaluation.attacked_net import attacked
from methods.evaluation.block import attack_block, library
from methods.evaluation.observer import Observer
from methods.networks.compact import run_model
from methods.networks.model_file import load_model
from methods.networks.resnet import Net
from methods.runtime.provenance import provenance
from methods.sparse.choice import QuickForm, lacking

TOLERATED = 0.1  # share of images
BORDER = 0.1  # of the median margin of clean images
EPS = "1/102000"  # most of the images withstand, of a random RN34


def margins(logits: Tensor, y: Tensor) -> Tensor:
    """Logit of the label, less the largest of the others: below 0 where the answer is wrong."""
    own = logits.gather(1, y[:, None]).squeeze(1)
    return own - logits.scatter(1, y[:, None], -torch.inf).amax(1)


class Least:
    """The least margin that a network was seen to have near each of some images; told by a hook."""

    def __init__(self, x: Tensor, y: Tensor, radius: float):
        self.x, self.y, self.radius = x, y, radius
        self.margin = torch.full((len(x),), torch.inf)

    def see(self, _: nn.Module, inputs: tuple[Tensor, ...], logits: Tensor) -> None:
        images = inputs[0].detach()
        away = torch.stack([(images - x).abs().flatten(1).amax(1) for x in self.x], 1)  # [images, examples]
        nearest, example = away.min(1)
        seen = margins(logits.detach(), self.y[example])
        for margin, place, distance in zip(seen, example.tolist(), nearest.tolist(), strict=True):
            if distance <= self.radius * 1.001:
                self.margin[place] = min(self.margin[place], margin)


@contextmanager
def watched(net: nn.Module, x: Tensor, y: Tensor, radius: float) -> Iterator[Least]:
    """Inside, what a network answers is looked at."""
    least = Least(x, y, radius)
    hook = net.register_forward_hook(least.see)
    try:
        yield least
    finally:
        hook.remove()


def plain(net: Net, x: Tensor, y: Tensor, spec: EvalSpec) -> tuple[Tensor, Tensor]:
    """By the library: which examples are broken, and the margins at what it made of them."""
    adversarial, _ = library(net, spec, spec.block_seed(0)).run_standard_evaluation(x, y, batch_size=len(x))
    with torch.no_grad():
        reached = margins(net(adversarial), y)
    return reached < 0, reached


def sparse(net: Net, x: Tensor, y: Tensor, spec: EvalSpec) -> tuple[Tensor, Tensor]:
    """By this evaluation on the engine: the same. The margins are those on the dense network, which confirms every break."""
    with attacked(net, engine=QuickForm) as frozen, watched(frozen.dense, x, y, spec.radius) as least:
        broken = attack_block(frozen, x, y, spec=spec, seed=spec.block_seed(0), observer=Observer())
    return torch.tensor([name != "none" for name in broken]), least.margin


def measure(net: Net, x: Tensor, y: Tensor | None, spec: EvalSpec) -> dict[str, Any]:
    """Seconds of both sides, and where their answers differ; without labels those are the network's own answers."""
    with torch.no_grad():
        logits = net(x)
    y = logits.argmax(1) if y is None else y
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    seconds, sides = {}, {}
    QuickForm(net)(x)  # compiled
    for name, attack in (("plain", plain), ("sparse", sparse)):
        started = clock()
        sides[name] = attack(net, x, y, spec)
        seconds[name] = clock() - started
    (theirs, reached), (ours, least) = sides["plain"], sides["sparse"]
    differing = [
        {"example": i, "broken_by": "sparse" if ours[i] else "plain", "margin": float((least if ours[i] else reached)[i])}
        for i in (ours != theirs).nonzero().flatten().tolist()
    ]
    return {
        "examples": len(x),
        "robust": {"plain": int((~theirs).sum()), "sparse": int((~ours).sum())},
        "seconds": seconds,
        "ratio": seconds["plain"] / seconds["sparse"],
        "clean_margin": statistics.median(margin for margin in margins(logits, y).tolist() if margin > 0),
        "differing": differing,
    }


def borderline(result: dict[str, Any]) -> bool:
    """Whether answers differ on few images, and only where the margin is small."""
    few = len(result["differing"]) <= TOLERATED * result["examples"]
    return few and all(abs(one["margin"]) <= BORDER * result["clean_margin"] for one in result["differing"])


def of_run(folder: Path, examples: int) -> tuple[Net, Tensor, Tensor]:
    """The network of a finished Run, and the first shipped test images as it knows them."""
    run = sealed.read(folder / paths.MANIFEST)["spec"]
    if run["dataset"] != "cifar10":
        raise UserError(f"{folder}: is a network for {run['dataset']}; images that ship with the project are of cifar10")
    first = next(iter(load("cifar10", source="sample", size=run["data"].get("size")).test.batches(batch=examples)))
    return load_model(run_model(folder)[0]).eval().requires_grad_(False), first.x, first.y


def of_random(arch: str, width: float, size: int, examples: int) -> tuple[Net, Tensor, None]:
    """A random network, and the first shipped test images."""
    data = load("cifar10", source="sample", size=size)
    seen = next(iter(data.val.batches(batch=64))).x  # batch norms know real images
    return pruned(arch, width=width, images=seen), next(iter(data.test.batches(batch=examples))).x, None


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m methods.bench.attack", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--run", type=Path, help="folder of a finished Run on CIFAR-10: its network, with real labels")
    parser.add_argument("--arch", default="rn34")
    parser.add_argument("--width", type=float, default=1.0, help="factor on the channel counts; default 1: the paper's")
    parser.add_argument("--size", type=int, default=16, choices=[16, 32], help="side of the images; default 16: a quarter of the time")
    parser.add_argument("--threads", type=int, default=1, help="default 1: what an evaluation of the workflow gets")
    parser.add_argument("--examples", type=int, help="test images; default 16 a thread, which the engine computes at once")
    parser.add_argument("--eps", help=f"radius; default 8/255 of a Run, else {EPS}: random networks are not robust")
    parser.add_argument("--attack", default="standard", choices=["standard", "quick"], help="quick: few steps, to try it out")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(arguments)
    quick = {"version": "custom", "attacks": ["apgd-ce", "square"], "apgd_iter": 3, "square_queries": 5}
    try:
        if lacking() is not None:
            raise UserError(f"the sparse engine cannot run here: {lacking()}")
        attack = quick if options.attack == "quick" else options.attack
        eps = options.eps or (EPS if options.run is None else "8/255")
        examples = options.examples or 16 * options.threads
        spec = eval_spec.parse({"attack": attack, "eps": eps, "examples": examples, "block": examples})
        random = options.run is None
        torch.set_num_threads(options.threads)
        net, x, y = of_random(options.arch, options.width, options.size, examples) if random else of_run(options.run, examples)
        result = measure(net, x, y, spec)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    kept = result["robust"]
    name = f"{options.arch}, width {options.width:g}, {options.size}x{options.size}" if random else options.run.name
    print(
        f"{name}: {result['ratio']:.2f}x as fast as a plain call; of {result['examples']} images"
        f" {kept['sparse']} robust (plain: {kept['plain']}), {len(result['differing'])} answers differ"
    )
    for one in result["differing"]:
        print(
            f"  image {one['example']}: broken on the {one['broken_by']} side only, to a margin of {one['margin']:.1e}"
            f" (median of clean images: {result['clean_margin']:.2f})"
        )
    report = {"bench": "attack", "network": name, "spec": spec.to_json(), "result": result}
    write_json(options.out, report | {"provenance": provenance(torch.device("cpu"))})
    return 0 if borderline(result) else 1


if __name__ == "__main__":
    sys.exit(main())
