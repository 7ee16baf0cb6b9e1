"""The result of an evaluation: per example, what broke it; counts and accuracies; warnings as data. Torch-free.

A shard file holds whole blocks. Merging puts the blocks of all shards in order; the merged file does not depend on how the work was cut.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from methods.core import eval_spec, sealed
from methods.core.errors import UserError
from methods.core.eval_spec import EvalSpec
from methods.core.trust import SQUARE_MARGIN, Panel, judged

FORMAT = 1
ROBUST, CLEAN = "none", "clean"


@dataclass(frozen=True, kw_only=True)
class BlockResult:
    """One block: `broken[i]` is "none" (robust), "clean" (misclassified as it is), or the attack that broke its i-th example."""

    number: int
    broken: tuple[str, ...]
    warnings: tuple[Mapping[str, Any], ...] = ()
    seconds: float = 0.0
    passes: int = 0


@dataclass(frozen=True, kw_only=True)
class Result:
    """A whole evaluation. `data` and `model` say on what and of what; `seconds` and `passes` are sums over blocks.

    A pass is one image through the network; where a gradient is wanted it counts twice. `trust` is no part of the answers.
    """

    spec: EvalSpec
    broken: tuple[str, ...]
    warnings: tuple[Mapping[str, Any], ...]
    data: str = ""
    model: str = ""
    seconds: float = 0.0
    passes: int = 0
    trust: Panel | None = None

    @property
    def n(self) -> int:
        return len(self.broken)

    @property
    def n_clean(self) -> int:
        return sum(b != CLEAN for b in self.broken)

    @property
    def n_robust(self) -> int:
        return sum(b == ROBUST for b in self.broken)

    @property
    def clean_acc(self) -> float:
        return self.n_clean / self.n

    @property
    def robust_acc(self) -> float:
        return self.n_robust / self.n

    @property
    def after(self) -> dict[str, float]:
        """Accuracy after each attack, in order."""
        names = self.spec.attack.names
        left = [sum(b not in (CLEAN, *names[: i + 1]) for b in self.broken) for i in range(len(names))]
        return {name: count / self.n for name, count in zip(names, left, strict=True)}

    def to_json(self) -> dict[str, Any]:
        """The merged file. Without an attack there is no robust accuracy, and none is claimed."""
        attacked = bool(self.spec.attack.names)
        return {
            "format": FORMAT,
            "clean_acc": self.clean_acc,
            "robust_acc": self.robust_acc if attacked else None,
            "n": self.n,
            "n_clean": self.n_clean,
            "n_robust": self.n_robust if attacked else None,
            "after": self.after,
            "broken_by": encode(self.broken, self.spec),
            "warnings": [dict(w) for w in self.warnings],
            "spec": self.spec.to_json(),
            "data": self.data,
            "model": self.model,
            "seconds": round(self.seconds, 3),
            "passes": self.passes,
            "trust": None if self.trust is None else self.trust.to_json(),
        }


def encode(broken: Sequence[str], spec: EvalSpec) -> dict[str, Any]:
    """One digit per example, an index into `codes`."""
    codes = [ROBUST, CLEAN, *spec.attack.names]
    return {"codes": codes, "examples": "".join(str(codes.index(b)) for b in broken)}


def decode(broken_by: Mapping[str, Any]) -> tuple[str, ...]:
    codes = broken_by["codes"]
    return tuple(codes[int(digit)] for digit in broken_by["examples"])


def summarise(spec: EvalSpec, blocks: Sequence[BlockResult], *, data: str = "", model: str = "", trust: Panel | None = None) -> Result:
    """Blocks in order of their number -> one Result, with the checks that need all of them."""
    ordered = sorted(blocks, key=lambda block: block.number)
    broken = tuple(b for block in ordered for b in block.broken)
    grouped: dict[tuple[str, str, str], list[int]] = {}
    for block in ordered:
        for w in block.warnings:
            grouped.setdefault((w["kind"], w["attack"], w["message"]), []).append(block.number)
    warnings = [
        {"kind": kind, "attack": attack, "message": message, "blocks": sorted(set(numbers))}
        for (kind, attack, message), numbers in grouped.items()
    ]
    result = Result(
        spec=spec,
        broken=broken,
        warnings=tuple(warnings),
        data=data,
        model=model,
        seconds=sum(block.seconds for block in ordered),
        passes=sum(block.passes for block in ordered),
    )
    result = dataclasses.replace(result, warnings=(*result.warnings, *_square_warning(result)))
    if trust is None or not result.after:
        return result
    counts = {name: result.broken.count(name) for name in result.after}
    return dataclasses.replace(result, trust=judged(trust, result.after, result.clean_acc, result.warnings, counts))


def _square_warning(result: Result) -> tuple[dict[str, Any], ...]:
    """AutoAttack's check that Square, which needs no gradient, breaks next to nothing; it only makes sense over all examples."""
    after = result.after
    others = [acc for name, acc in after.items() if name != "square"]
    if "square" not in after or not others:
        return ()
    gain = min(others) - after["square"]
    if gain <= SQUARE_MARGIN:
        return ()
    message = (
        f"Square, which needs no gradient, broke {gain:.2%} of the images after the other attacks: gradients may have misled those,"
        " and the number may be too high. Try more iterations and restarts, or an adaptive attack."
    )
    return ({"kind": "square", "attack": "square", "message": message, "blocks": []},)


def shard_json(
    spec: EvalSpec,
    blocks: Sequence[BlockResult],
    *,
    total: int,
    data: str,
    fingerprint: str,
    model: str,
    provenance: Mapping[str, Any],
    trust: Panel | None = None,
) -> dict[str, Any]:
    """The file of one shard: its blocks, and what they are blocks of; the shard with the first block holds the measured trust panel."""
    return {
        "format": FORMAT,
        "spec": spec.to_json(),
        "total": total,
        "data": data,
        "fingerprint": fingerprint,
        "model": model,
        "provenance": dict(provenance),
        "blocks": [block_json(spec, block) for block in blocks],
        "trust": None if trust is None else trust.to_json(),
    }


def block_json(spec: EvalSpec, block: BlockResult) -> dict[str, Any]:
    return {
        "number": block.number,
        "broken_by": encode(block.broken, spec),
        "warnings": [dict(w) for w in block.warnings],
        "seconds": round(block.seconds, 3),
        "passes": block.passes,
    }


def read_block(value: Mapping[str, Any]) -> BlockResult:
    return BlockResult(
        number=value["number"],
        broken=decode(value["broken_by"]),
        warnings=tuple(value["warnings"]),
        seconds=value["seconds"],
        passes=value.get("passes", 0),  # shards of an earlier version do not say
    )


def merge(paths: Sequence[Path]) -> Result:
    """All shards of one evaluation -> its Result. Shards that do not belong together, or that miss or repeat a block, are refused."""
    if not paths:
        raise UserError("merge: no shard file was given")
    shards = [_read_shard(Path(path)) for path in paths]
    first = shards[0]
    for path, shard in zip(paths, shards, strict=True):
        for key in ("spec", "total", "fingerprint", "model"):
            if shard[key] != first[key]:
                both = f"'{key}' is {shard[key]!r}, but {first[key]!r} in {paths[0]}"
                raise UserError(f"{path}: {both}; these are not shards of one evaluation")
    spec = eval_spec.parse(first["spec"])
    holders: dict[int, Path] = {}
    blocks = []
    for path, shard in zip(paths, shards, strict=True):
        for value in shard["blocks"]:
            if value["number"] in holders:
                raise UserError(f"{path}: block {value['number']} is already in {holders[value['number']]}; give each shard once")
            holders[value["number"]] = path
            blocks.append(read_block(value))
    missing = sorted(set(range(spec.blocks(first["total"]))) - set(holders))
    if missing:
        raise UserError(f"merge: the blocks {_some(missing)} are in none of the {len(paths)} shard files; add the shards that hold them")
    panels = [Panel.from_json(shard["trust"]) for shard in shards if shard.get("trust")]
    result = summarise(spec, blocks, data=first["data"], model=first["model"], trust=panels[0] if panels else None)
    if result.n != first["total"]:
        raise UserError(f"merge: the shards hold {result.n} examples, {first['total']} were to be evaluated")
    return result


def _read_shard(path: Path) -> dict[str, Any]:
    shard = sealed.read(path)
    needed = ("format", "spec", "total", "data", "fingerprint", "model", "blocks")
    missing = [key for key in needed if key not in shard]
    if missing:
        raise UserError(f"{path}: not a shard of an evaluation: the key '{missing[0]}' is missing")
    if shard["format"] != FORMAT:
        raise UserError(f"{path}: shard format {shard['format']!r}, this version reads format {FORMAT}; evaluate again")
    return shard


def _some(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers[:8])) + (f" and {len(numbers) - 8} more" if len(numbers) > 8 else "")
