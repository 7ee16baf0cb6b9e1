"""The commands of `python -m methods.evaluate`: run (one shard of a Run), merge, file (one model file), export."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from methods.core import eval_result, eval_spec, fingerprint, paths, sealed, settings
from methods.core.datasets import DATASETS, SOURCES
from methods.core.errors import UserError
from methods.core.eval_spec import EvalSpec
from methods.core.files import write_json
from methods.evaluation.robustbench_export import model_info
from methods.runtime.progress import Progress

if TYPE_CHECKING:  # merging and exporting do without torch
    from torch import nn

    from methods.data.load import Data

RADII = {name: facts.eps for name, facts in DATASETS.items()}


def parser(description: str) -> argparse.ArgumentParser:
    plain = {"formatter_class": argparse.RawDescriptionHelpFormatter}
    top = argparse.ArgumentParser(prog="python -m methods.evaluate", description=description, **plain)
    commands = top.add_subparsers(required=True, metavar="COMMAND")

    one = commands.add_parser("run", help="evaluate one shard of a trained run", description=eval_spec.__doc__, **plain)
    one.add_argument("--run", type=Path, required=True, metavar="DIR", help="folder of the run (train.json, model.safetensors)")
    one.add_argument("--spec", required=True, metavar="JSON", help="the evaluation, as JSON (described above)")
    one.add_argument("--shard", default="1/1", metavar="K/N", help="evaluate part K of N (1/N to N/N); default 1/1")
    one.add_argument("--out", type=Path, required=True, metavar="FILE", help="the shard's result; merge makes the final file of all shards")
    _data_root(one)
    one.set_defaults(command=run)

    many = commands.add_parser("merge", help="put the shards of one evaluation together")
    many.add_argument("--out", type=Path, required=True, metavar="FILE")
    many.add_argument("shards", type=Path, nargs="+", metavar="SHARD", help="result files of `run`, all N of them")
    many.set_defaults(command=merge)

    file = commands.add_parser("file", help="evaluate one model file on a data set", description=eval_spec.__doc__, **plain)
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
    file.set_defaults(command=evaluate_file)

    info = commands.add_parser("export", help="a merged result as a RobustBench model_info entry")
    info.add_argument("result", type=Path, help="a merged result (merge, or file --out)")
    info.add_argument("--out", type=Path, required=True, metavar="FILE")
    info.add_argument("--dataset", choices=list(RADII), required=True)
    for name, text in (("name", "title of the paper"), ("architecture", "for instance ResNet-34")):
        info.add_argument(f"--{name}", required=True, help=text)
    for name in ("authors", "venue", "link", "footnote"):
        info.add_argument(f"--{name}", default="")
    info.add_argument("--reported", type=float, help="robust accuracy that the paper reports, in percent")
    info.add_argument("--additional-data", action="store_true", help="trained on more than the data set's training images")
    info.set_defaults(command=export)
    return top


def _data_root(command: argparse.ArgumentParser) -> None:
    where = "where data sets lie; default $SUITE_DATA_ROOT"
    command.add_argument("--data-root", type=Path, default=settings.data_root(), metavar="DIR", help=where)


def run(options: argparse.Namespace) -> None:
    """One shard of a Run's evaluation."""
    from methods.data.load import load_of
    from methods.networks.model_file import load_model

    spec = eval_spec.parse(options.spec)
    shard = _shard(options.shard)
    manifest = sealed.read(options.run / paths.MANIFEST)
    trained = manifest.get("spec")
    for key in ("dataset", "data"):
        if not isinstance(trained, dict) or key not in trained:
            raise UserError(f"{options.run / paths.MANIFEST}: the key 'spec.{key}' is missing; it is not the manifest of a run")
    path = options.run / paths.MODEL
    model = sealed.require(path, manifest.get("model_sha256"))
    net = load_model(path)
    data = load_of(trained, root=options.data_root)
    value, finish = shard_result(net, data, spec, shard, model=model, work=options.out.parent / paths.BLOCKS)
    sealed.write(options.out, value)
    finish()


def shard_result(
    net: nn.Module, data: Data, spec: EvalSpec, shard: tuple[int, int], *, model: str, work: Path | None
) -> tuple[dict[str, Any], Any]:
    """The shard's result, and a function that drops its unfinished work from disk: to be called once the result is safe."""
    from methods.evaluation.attacked_net import victim
    from methods.evaluation.runner import Store, evaluate_blocks
    from methods.runtime.device import device as chosen_device
    from methods.runtime.provenance import provenance

    files = fingerprint.of_evaluation()
    k, n = shard
    total = spec.count(len(data.test))
    numbers = range(k - 1, spec.blocks(total), n)
    mine = sum(min(spec.block, total - number * spec.block) for number in numbers)
    device = chosen_device()
    store = Store(folder=work, model=model)
    passes = sum(map(spec.attack.cost, spec.attack.names))

    def fetch(number: int) -> Any:
        batch = next(iter(data.test.batches(batch=spec.block, start=number)))
        size = min(spec.block, total - number * spec.block)
        return batch.x[:size], batch.y[:size]

    with victim(net.to(device)) as attacked:
        blocks, paths = evaluate_blocks(
            attacked, numbers, fetch, spec=spec, store=store, progress=Progress(mine, passes=passes), device=device
        )
    value = eval_result.shard_json(
        spec, blocks, total=total, data=data.label, fingerprint=data.fingerprint, model=model, provenance=provenance(device, files)
    )
    return value, lambda: store.clear(paths)


def merge(options: argparse.Namespace) -> None:
    sealed.write(options.out, eval_result.merge(options.shards).to_json())


def evaluate_file(options: argparse.Namespace) -> None:
    """One model file on a data set, in one process; prints a summary."""
    from methods.data.load import load
    from methods.networks.imported import read_network

    attack = options.attack
    if attack.lstrip().startswith("{"):
        attack = _parse_json(attack, "--attack")
    examples = options.examples
    if examples != "all" and not examples.isdigit():
        raise UserError(f"--examples {examples}: a number or all")
    spec = eval_spec.parse(
        {
            "attack": attack,
            "norm": options.norm,
            "eps": options.eps or RADII[options.dataset],
            "examples": examples if examples == "all" else int(examples),
            "seed": options.seed,
            "block": options.block,
        }
    )
    net = read_network(options.model, options.net, fold=options.fold)
    data = load(options.dataset, source=options.source, root=options.data_root, size=options.size)
    work = options.out and options.out.with_name(f".{options.out.name}.blocks")
    value, finish = shard_result(net, data, spec, (1, 1), model=sealed.file_hash(options.model), work=work)
    blocks = [eval_result.read_block(block) for block in value["blocks"]]
    result = eval_result.summarise(spec, blocks, data=value["data"], model=value["model"])
    if options.out:
        sealed.write(options.out, result.to_json())
        finish()
    print(summary(result))


def summary(result: eval_result.Result) -> str:
    lines = [result.data, f"clean accuracy    {result.clean_acc:8.2%}  ({result.n_clean}/{result.n})"]
    lines += [f"after {name:12s}{acc:8.2%}" for name, acc in result.after.items()]
    if result.after:
        spec = result.spec
        lines.append(f"robust accuracy   {result.robust_acc:8.2%}  ({result.n_robust}/{result.n}), {spec.norm} radius {spec.eps}")
    lines += [f"warning ({w['kind']}): {w['message']}" for w in result.warnings]
    return "\n".join(lines)


def export(options: argparse.Namespace) -> None:
    entry = model_info(
        sealed.read(options.result),
        dataset=options.dataset,
        name=options.name,
        architecture=options.architecture,
        authors=options.authors,
        venue=options.venue,
        link=options.link,
        footnote=options.footnote,
        reported=options.reported,
        additional_data=options.additional_data,
    )
    write_json(options.out, entry)


def _shard(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise UserError(f"--shard {text}: out of range; give K/N with 1 <= K <= N, for instance 1/4")
    return int(match[1]), int(match[2])


def _parse_json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise UserError(f"{where}: not JSON ({error})") from error
