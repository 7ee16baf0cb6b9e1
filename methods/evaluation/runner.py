"""An evaluation as blocks of consecutive test examples, each attacked on its own with its own seed.

The answers of a block depend on the network, on the block's images and on the evaluation's settings, and on nothing else: not on how
blocks are dealt to shards, not on what ran before. A killed evaluation goes on after the last attack that it finished. (Another device or
number of threads may round differently.)
"""

from __future__ import annotations

import contextlib
import hashlib
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from methods.core import sealed
from methods.core.errors import UserError
from methods.core.eval_result import BlockResult, decode, encode
from methods.core.eval_spec import EvalSpec
from methods.evaluation.attack_warnings import Collector
from methods.evaluation.attacked_net import Victim
from methods.evaluation.block import attack_block
from methods.runtime.progress import Progress

Fetch = Callable[[int], tuple[Tensor, Tensor]]


@dataclass(frozen=True, kw_only=True)
class Store:
    """Unfinished work on disk: one small file per block, named by all that decides its answers. `folder` None keeps nothing."""

    folder: Path | None = None
    model: str = ""

    def path(self, spec: EvalSpec, number: int, x: Tensor, y: Tensor) -> Path | None:
        if self.folder is None:
            return None
        # The number of examples does not matter to a block, beyond the images that are in it.
        digest = hashlib.sha256(f"{spec.canonical('examples')} {self.model} {number} {tuple(x.shape)}".encode())
        digest.update(x.cpu().contiguous().numpy().data)
        digest.update(y.cpu().contiguous().numpy().data)
        return self.folder / f"block-{number:05d}.{digest.hexdigest()[:16]}.json"

    def clear(self, paths: Iterable[Path | None]) -> None:
        """Remove these blocks, and the folder with the last of them (another shard may still use it)."""
        for path in paths:
            if path is not None:
                path.unlink(missing_ok=True)
        if self.folder is not None:
            with contextlib.suppress(OSError):  # not there, or not empty
                self.folder.rmdir()


@dataclass(kw_only=True)
class Work:
    """How far a block has come: the attacks that are done and the answers after them."""

    spec: EvalSpec
    path: Path | None
    done: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    warnings: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0

    @classmethod
    def resume(cls, spec: EvalSpec, path: Path | None) -> Work:
        """The saved state, or a fresh one. A damaged file is named and as good as none: the block is computed again."""
        fresh = cls(spec=spec, path=path)
        if path is None or not path.exists():
            return fresh
        try:
            saved = sealed.read(path)
        except UserError:
            print(f"warning: {path} is damaged; the block is computed again", file=sys.stderr, flush=True)
            return fresh
        kept = {key: saved[key] for key in ("done", "warnings", "seconds")}
        return cls(spec=spec, path=path, broken=list(decode(saved["broken_by"])), **kept)

    def save(self) -> None:
        if self.path is not None:
            kept = {"done": self.done, "warnings": self.warnings, "seconds": self.seconds}
            sealed.write(self.path, kept | {"broken_by": encode(self.broken, self.spec)})


def evaluate_blocks(
    net: Victim, numbers: Iterable[int], fetch: Fetch, *, spec: EvalSpec, store: Store, progress: Progress, device: torch.device
) -> tuple[list[BlockResult], list[Path | None]]:
    """The blocks with these numbers, and the files in which their state is kept until the caller has published the result."""
    results, paths = [], []
    for number in numbers:
        x, y = fetch(number)
        check_images(x, y, number * spec.block)
        path = store.path(spec, number, x, y)
        work = Work.resume(spec, path)
        known = work.seconds
        finish_block(net, x.to(device), y.to(device), number=number, work=work, progress=progress)
        progress.block(len(x), sum(b == "none" for b in work.broken), computed=work.seconds - known)
        results.append(BlockResult(number=number, broken=tuple(work.broken), warnings=tuple(work.warnings), seconds=work.seconds))
        paths.append(path)
    return results, paths


def finish_block(net: Victim, x: Tensor, y: Tensor, *, number: int, work: Work, progress: Progress) -> None:
    """Run what is left of a block; a memory error halves the images that the network sees at once, and the attack starts anew."""
    names, seed = work.spec.attack.names, work.spec.block_seed(number)
    net.tick = progress.tick

    def begin(attack: str, robust: int) -> None:
        later = names[names.index(attack) :]
        progress.attack(attack, number, len(x), robust, passes=robust * sum(map(work.spec.attack.cost, later)))

    if work.broken and work.done == list(names):
        return
    while True:
        warn = Collector()
        warn.warnings = list(work.warnings)
        lap = [time.perf_counter()]

        def save(attack: str, broken: Sequence[str], warn: Collector = warn, lap: list[float] = lap) -> None:
            lap.append(time.perf_counter())
            work.done, work.broken, work.warnings = [*work.done, attack], list(broken), list(warn.warnings)
            work.seconds += lap[-1] - lap[-2]
            work.save()

        try:
            work.broken = attack_block(
                net,
                x,
                y,
                spec=work.spec,
                seed=seed,
                warn=warn,
                check=number == 0,
                before=work.broken,
                done=work.done,
                begin=begin,
                save=save,
            )
        except (torch.OutOfMemoryError, RuntimeError) as error:
            if not _memory(error):
                raise
            chunk = net.halve(len(x))
            work.warnings = [*work.warnings, _memory_note(chunk)]
            continue
        if not names:
            work.seconds += time.perf_counter() - lap[0]
            work.save()
        return


def _memory(error: BaseException) -> bool:
    return isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in str(error)


def _memory_note(chunk: int) -> dict[str, Any]:
    message = f"out of memory: the network saw {chunk} images at a time; answers can differ by rounding"
    return {"kind": "memory", "attack": "memory", "message": message}


def check_images(x: Tensor, y: Tensor, start: int) -> None:
    """Images are float [n, channels, height, width] in [0, 1], labels n whole numbers; `start` is the position of the first one."""
    if x.ndim != 4 or not x.is_floating_point():
        raise UserError(f"images x must be floats of shape [n, channels, height, width], not {x.dtype} of shape {tuple(x.shape)}")
    if y.shape != (len(x),) or y.is_floating_point() or y.dtype == torch.bool:
        raise UserError(f"labels y must be {len(x)} whole numbers, one per image, not {y.dtype} of shape {tuple(y.shape)}")
    outside = (~((x >= 0) & (x <= 1))).flatten(1).any(1).nonzero()
    if len(outside):
        bad = start + int(outside[0, 0])
        raise UserError(f"image x[{bad}] has values outside of [0, 1] (or NaN); normalisation belongs inside the network")
