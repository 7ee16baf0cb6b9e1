"""Evaluate a network on test images: clean accuracy, and accuracy under AutoAttack or PGD.

In Python, for any `torch.nn.Module` that maps images in [0, 1] to logits:

    from methods.evaluate import evaluate
    result = evaluate(net, x, y, spec={"attack": "standard", "eps": "8/255", "seed": 0})
    result.clean_acc, result.robust_acc, result.after, result.broken, result.warnings

On the command line:

    python -m methods.evaluate file model.safetensors --dataset cifar10 --source sample --examples 100
    python -m methods.evaluate run --run results/runs/RUN --spec '{"attack": "standard", "eps": "8/255"}' --shard 1/4 --out shard1.json
    python -m methods.evaluate merge --out result.json shard1.json shard2.json shard3.json shard4.json
    python -m methods.evaluate curve --run results/runs/RUN --out curve.json
    python -m methods.evaluate export result.json --out model_info.json --dataset cifar10 --name "..." --architecture "..."
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from methods.core import eval_spec
from methods.core.errors import UserError
from methods.core.eval_result import Result, summarise
from methods.core.eval_spec import EvalSpec

if TYPE_CHECKING:  # merging and exporting do without torch
    import numpy as np
    from torch import Tensor, nn

    from methods.evaluation.attacked_net import Engine


def evaluate(
    model: nn.Module,
    x: Tensor | np.ndarray,
    y: Tensor | np.ndarray,
    *,
    spec: EvalSpec | Mapping[str, Any] | str = "{}",
    progress: bool = False,
    resume: Path | None = None,
    fast: bool = True,
    engine: Engine | None = None,
    trust: bool = True,
) -> Result:
    """Evaluate `model` on images x (float, [n, channels, height, width], in [0, 1]) with labels y: tensors or numpy arrays.

    The model is evaluated in eval mode on the device of its parameters; its mode and its gradient flags are restored afterwards.
    `spec` (see `methods.core.eval_spec`) defaults to the standard AutoAttack, Linf, 8/255, all of x, seed 0, blocks of 250.
    `progress` reports on stderr. With a folder `resume`, an interrupted call goes on where it was when it is made again.
    `fast=False` leaves the network's batch norms and memory format alone; the answers are the same to rounding.
    `engine` offers a faster form of the network to search on (see `methods.evaluation.attacked_net`).

    `result.trust` is a panel of checks that the number is real (`methods.core.trust`), for at most a quarter more passes; `trust=False`
    leaves it out.

    Bad input (labels out of range, images outside of [0, 1], logits that are not finite, ...) raises `methods.core.errors.UserError`.
    """
    import torch

    from methods.evaluation.attacked_net import model_hash
    from methods.evaluation.images import from_arrays
    from methods.evaluation.runner import run_shard

    spec = spec if isinstance(spec, EvalSpec) else eval_spec.parse(spec)
    images, name = from_arrays(x, y), model_hash(model)
    device = next((p.device for p in (*model.parameters(), *model.buffers())), getattr(x, "device", None) or torch.device("cpu"))
    stream = sys.stderr if progress else None
    shard = run_shard(model, images, spec, model=name, device=device, work=resume, stream=stream, fast=fast, engine=engine, trust=trust)
    shard.clear()
    return summarise(spec, shard.blocks, model=name, trust=shard.trust)


def main(arguments: list[str] | None = None) -> int:
    """The command line; a problem that the user can solve is one line on stderr and exit code 2."""
    from methods.evaluation.arguments import parser

    options = parser(__doc__).parse_args(arguments)
    try:
        options.command(options)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:  # a folder that cannot be written, a full disk
        where = f"{error.filename or options.out}: {error.strerror or error}"
        print(f"error: {where}; once that is solved, run the same command again: finished blocks are kept", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped; finished blocks are kept: run the same command again to go on", file=sys.stderr)
        return 75
    return 0


class _CallableModule(ModuleType):
    """`from methods import evaluate` is this module once it is loaded: then it must still be the function of that name."""

    def __call__(self, *arguments: Any, **options: Any) -> Result:
        return evaluate(*arguments, **options)


sys.modules[__name__].__class__ = _CallableModule

if __name__ == "__main__":
    sys.exit(main())
