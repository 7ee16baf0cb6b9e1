"""The command line of `python -m methods.evaluate`. Torch-free."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

from methods.core import eval_spec, settings
from methods.core.datasets import DATASETS, SOURCES
from methods.evaluation import commands

RADII = {name: facts.eps for name, facts in DATASETS.items()}


def parser(description: str) -> argparse.ArgumentParser:
    plain = argparse.RawDescriptionHelpFormatter
    top = argparse.ArgumentParser(prog="python -m methods.evaluate", description=description, formatter_class=plain)
    choices = top.add_subparsers(required=True, metavar="COMMAND")
    described = partial(choices.add_parser, description=eval_spec.__doc__, formatter_class=plain)

    one = described("run", help="evaluate one shard of a trained run")
    one.add_argument("--run", type=Path, required=True, metavar="DIR", help="folder of the run (train.json, model.safetensors)")
    one.add_argument("--spec", required=True, metavar="JSON", help="the evaluation, as JSON (described above)")
    one.add_argument("--shard", default="1/1", metavar="K/N", help="evaluate shard K of N (1/N to N/N); default 1/1")
    one.add_argument("--out", type=Path, required=True, metavar="FILE", help="the shard's result; merge makes the final file of all shards")
    _data_root(one)
    _trust(one)
    one.set_defaults(command=commands.run)

    many = choices.add_parser("merge", help="put the shards of one evaluation together")
    many.add_argument("--out", type=Path, required=True, metavar="FILE")
    many.add_argument("shards", type=Path, nargs="+", metavar="SHARD", help="result files of `run`, all N of them")
    many.set_defaults(command=commands.merge)

    file = described("file", help="evaluate one model file on a data set")
    file.add_argument("model", type=Path, help="a model file of the suite, or with --net a file of weights (.pt, .pth, .safetensors)")
    file.add_argument("--net", metavar="MODULE:FUNCTION", help="builds the network for a file of weights; maps [0, 1] images to logits")
    file.add_argument("--fold", action="store_true", help="with --net: fold batch norms (faster; not for randomised networks)")
    file.add_argument("--dataset", required=True, choices=list(RADII))
    file.add_argument("--source", default="full", choices=SOURCES, help="default full")
    file.add_argument("--size", type=int, metavar="SIDE", help="side of smaller images than the data set's own, for instance 16")
    file.add_argument("--attack", default="standard", help="standard, pgd, clean, or JSON of a custom attack; default standard")
    file.add_argument("--eps", help=f"radius, for instance 8/255; default {', '.join(f'{e} ({d})' for d, e in RADII.items())}")
    file.add_argument("--norm", default="Linf", choices=eval_spec.NORMS)
    file.add_argument("--examples", default="all", help="the first so many test images, or all (default)")
    file.add_argument("--seed", type=int, default=0)
    file.add_argument("--block", type=int, default=250, help="examples attacked together; default 250")
    file.add_argument("--out", type=Path, metavar="FILE", help="write the whole result as JSON; an interrupted call goes on from there")
    _data_root(file)
    _trust(file)
    file.set_defaults(command=commands.evaluate_file)

    many_radii = choices.add_parser("curve", help="robust accuracy of a trained run at eight radii, by APGD")
    many_radii.add_argument("--run", type=Path, required=True, metavar="DIR", help="folder of the run")
    many_radii.add_argument("--out", type=Path, required=True, metavar="FILE", help="JSON; an interrupted call goes on from there")
    many_radii.add_argument("--norm", default="Linf", choices=eval_spec.NORMS)
    many_radii.add_argument("--radii", nargs="+", metavar="EPS", help="default: a quarter to four times the data set's (128/255 for L2)")
    many_radii.add_argument("--examples", type=int, default=500, help="the first so many test images; default 500")
    many_radii.add_argument("--iterations", type=int, default=20, help="of APGD; default 20")
    many_radii.add_argument("--seed", type=int, default=0)
    many_radii.add_argument("--block", type=int, default=250)
    _data_root(many_radii)
    many_radii.set_defaults(command=commands.security_curve)

    info = choices.add_parser("export", help="a merged result as a RobustBench model_info entry")
    info.add_argument("result", type=Path, help="a merged result (merge, or file --out)")
    info.add_argument("--out", type=Path, required=True, metavar="FILE")
    info.add_argument("--dataset", choices=list(RADII), required=True)
    for name, text in (("name", "title of the paper"), ("architecture", "for instance ResNet-34")):
        info.add_argument(f"--{name}", required=True, help=text)
    for name in ("authors", "venue", "link", "footnote"):
        info.add_argument(f"--{name}", default="")
    info.add_argument("--reported", type=float, help="robust accuracy that the paper reports, in percent")
    info.add_argument("--additional-data", action="store_true", help="trained on more than the data set's training images")
    info.set_defaults(command=commands.export)
    return top


def _data_root(command: argparse.ArgumentParser) -> None:
    where = "where data sets lie; default $SUITE_DATA_ROOT"
    command.add_argument("--data-root", type=Path, default=settings.data_root(), metavar="DIR", help=where)


def _trust(command: argparse.ArgumentParser) -> None:
    command.add_argument("--no-trust", dest="trust", action="store_false", help="leave out the trust panel (methods/core/trust.py)")
