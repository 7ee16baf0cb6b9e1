"""The commands of `python -m methods.evaluate`: run (one shard of a Run), merge, curve, file (one model file), export."""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

from methods.core import eval_result, eval_spec, fingerprint, paths, sealed
from methods.core.datasets import DATASETS
from methods.core.errors import UserError
from methods.core.files import write_json
from methods.evaluation.robustbench_export import model_info

MOST_SHARDS = 10_000


def run(options: argparse.Namespace) -> None:
    """One shard of a Run's evaluation."""
    from methods.data.load import load_of
    from methods.evaluation.images import from_split
    from methods.evaluation.runner import run_shard
    from methods.networks.compact import run_model
    from methods.networks.model_file import load_model
    from methods.runtime.device import device as chosen_device
    from methods.runtime.provenance import provenance

    spec = eval_spec.parse(options.spec)
    k, n = _shard(options.shard)
    trained = _trained(options.run)
    path, model = run_model(options.run)
    net = load_model(path)
    data = load_of(trained, root=options.data_root)
    device, files = chosen_device(), fingerprint.of_evaluation()
    work = options.out.parent / paths.BLOCKS
    shard = run_shard(
        net, from_split(data.test), spec, model=model, device=device, shard=(k, n), work=work, stream=sys.stderr, trust=options.trust
    )
    value = eval_result.shard_json(
        spec,
        shard.blocks,
        total=shard.total,
        data=data.label,
        fingerprint=data.fingerprint,
        model=model,
        provenance={**provenance(device, files), "engine": shard.engine},
        trust=shard.trust,
    )
    sealed.write(options.out, value)
    shard.clear()


def security_curve(options: argparse.Namespace) -> None:
    """Robust accuracy of a Run at several radii."""
    from methods.data.load import load_of
    from methods.evaluation.curve import L2_RADIUS, curve, radii, specs
    from methods.evaluation.images import from_split
    from methods.networks.compact import run_model
    from methods.networks.model_file import load_model
    from methods.runtime.device import device as chosen_device

    trained = _trained(options.run)
    data = load_of(trained, root=options.data_root)
    chosen = options.radii or radii(DATASETS[trained["dataset"]].eps if options.norm == "Linf" else L2_RADIUS)
    budget = {"examples": options.examples, "iterations": options.iterations, "seed": options.seed, "block": options.block}
    wanted = specs(chosen, norm=options.norm, classes=data.classes, **budget)
    path, model = run_model(options.run)
    work = options.out.with_name(f".{options.out.name}.blocks")
    value, shards = curve(
        load_model(path), from_split(data.test), wanted, model=model, device=chosen_device(), work=work, stream=sys.stderr
    )
    sealed.write(options.out, value | {"data": data.label})
    for shard in shards:
        shard.clear()


def _trained(run: Path) -> dict[str, Any]:
    """The spec of a Run, from its manifest."""
    manifest = sealed.read(run / paths.MANIFEST)
    trained = manifest["spec"] if isinstance(manifest.get("spec"), dict) else {}
    for key in ("dataset", "data"):
        if key not in trained:
            raise UserError(f"{run / paths.MANIFEST}: the key 'spec.{key}' is missing; it is not the manifest of a run")
    return trained


def merge(options: argparse.Namespace) -> None:
    sealed.write(options.out, eval_result.merge(options.shards).to_json())


def evaluate_file(options: argparse.Namespace) -> None:
    """One model file on a data set, in one process; prints a summary."""
    from methods.data.load import load
    from methods.evaluation.images import from_split
    from methods.evaluation.runner import run_shard
    from methods.networks.imported import read_network
    from methods.runtime.device import device as chosen_device

    attack = options.attack
    if attack.lstrip().startswith("{"):
        attack = _parse_json(attack, "--attack")
    examples = options.examples
    if examples != "all" and not re.fullmatch("[0-9]{1,9}", examples):
        raise UserError(f"--examples {examples}: a number or all")
    spec = eval_spec.parse(
        {
            "attack": attack,
            "norm": options.norm,
            "eps": options.eps or DATASETS[options.dataset].eps,
            "examples": examples if examples == "all" else int(examples),
            "seed": options.seed,
            "block": options.block,
        }
    )
    net = read_network(options.model, options.net, fold=options.fold)
    data = load(options.dataset, source=options.source, root=options.data_root, size=options.size)
    work = options.out and options.out.with_name(f".{options.out.name}.blocks")
    model = sealed.file_hash(options.model)
    shard = run_shard(
        net, from_split(data.test), spec, model=model, device=chosen_device(), work=work, stream=sys.stderr, trust=options.trust
    )
    result = eval_result.summarise(spec, shard.blocks, data=data.label, model=model, trust=shard.trust)
    if options.out:
        sealed.write(options.out, result.to_json())
        shard.clear()
    print(summary(result))


def summary(result: eval_result.Result) -> str:
    lines = [result.data, f"clean accuracy    {result.clean_acc:8.2%}  ({result.n_clean}/{result.n})"]
    lines += [f"after {name:12s}{acc:8.2%}" for name, acc in result.after.items()]
    if result.after:
        spec = result.spec
        lines.append(f"robust accuracy   {result.robust_acc:8.2%}  ({result.n_robust}/{result.n}), {spec.norm} radius {spec.eps}")
    lines += [f"warning ({w['kind']}): {w['message']}" for w in result.warnings]
    if result.trust is not None:
        lines.append(f"trust: {result.trust.state}")
        lines += [f"  {check.name:14s}{check.state:15s}{check.text}" for check in result.trust.checks]
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
    match = re.fullmatch(r"([0-9]{1,5})/([0-9]{1,5})", text)
    if not match or not 1 <= int(match[1]) <= int(match[2]) <= MOST_SHARDS:
        raise UserError(f"--shard {text}: out of range; give K/N with 1 <= K <= N <= {MOST_SHARDS}, for instance 1/4")
    return int(match[1]), int(match[2])


def _parse_json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else error
        raise UserError(f"{where}: not JSON ({reason})") from None
