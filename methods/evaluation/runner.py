"""An evaluation as blocks of consecutive test examples, each attacked on its own with its own seed.

The answers of a block depend on the network, on the block's images and on the evaluation's settings, and on nothing else: not on how
blocks are dealt to shards, not on what ran before. (Another device or number of threads may round differently.)
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TextIO

import torch
from torch import Tensor, nn

from methods.core.errors import UserError
from methods.core.eval_result import ROBUST, BlockResult
from methods.core.eval_spec import EvalSpec
from methods.core.trust import Panel
from methods.evaluation.attacked_net import AttackedNet, Engine, attacked
from methods.evaluation.block import attack_block
from methods.evaluation.images import Images
from methods.evaluation.observer import AttackWarning, Observer
from methods.evaluation.trust.panel import measure
from methods.evaluation.unfinished import Store, Work
from methods.runtime.progress import Progress
from methods.sparse.choice import DENSE, SPARSE, quick_form


@dataclass(frozen=True, kw_only=True)
class Shard:
    """The blocks of one shard of an evaluation of `total` examples, and the engine that attacks searched on.

    `clear` drops its unfinished work once they are safe.
    """

    total: int
    engine: str
    blocks: list[BlockResult]
    store: Store
    paths: list[Path | None]
    trust: Panel | None = None

    def clear(self) -> None:
        self.store.clear(self.paths)


def run_shard(
    net: nn.Module,
    images: Images,
    spec: EvalSpec,
    *,
    model: str,
    device: torch.device,
    shard: tuple[int, int] = (1, 1),
    work: Path | None = None,
    stream: TextIO | None = None,
    fast: bool = True,
    engine: Engine | None = None,
    trust: bool = True,
) -> Shard:
    """Evaluate shard (k, n): every n-th block from the k-th on.

    `model` names the network for the unfinished work that is kept in the folder `work`; progress is shown on `stream`. Without an
    `engine` the sparse one is asked, unless the network is to be left as it is (`fast`).
    `trust` adds the panel of `methods.core.trust` to the shard that holds the first block.
    """
    k, n = shard
    total = spec.count(images.count)
    numbers = range(k - 1, spec.blocks(total), n)
    examples = sum(min(spec.block, total - number * spec.block) for number in numbers)
    passes = sum(map(spec.attack.cost, spec.attack.names))
    progress = Progress(examples, stream, passes=passes)
    if engine is None and fast:
        engine = partial(quick_form, images=examples * passes, side=images.side)
    store, results, paths, panel = Store(folder=work, model=model), [], [], None
    with attacked(net.to(device), fast=fast, engine=engine) as frozen:
        runner = Runner(net=frozen, spec=spec, progress=progress)
        for number in numbers:
            x, y = images.fetch(number, spec.block, total)
            paths.append(store.path(spec, number, x, y))
            results.append(runner.block(number, x.to(device), y.to(device), Work.resume(spec, paths[-1])))
        if trust and k == 1 and spec.attack.names:
            x, y = images.fetch(0, spec.block, total)
            panel = measure(frozen, net, x.to(device), y.to(device), results[0], spec, total, runner.chunk)
        used = DENSE if frozen.exact else SPARSE
    return Shard(total=total, engine=used, blocks=results, store=store, paths=paths, trust=panel)


@dataclass(kw_only=True)
class Runner:
    """Attacks blocks one after the other; `chunk` is how many images the network sees at once, None while all that it is given."""

    net: AttackedNet
    spec: EvalSpec
    progress: Progress
    chunk: int | None = None

    def block(self, number: int, x: Tensor, y: Tensor, work: Work) -> BlockResult:
        """Run what is left of a block; after a memory error the network sees half as many images at once, and the attack starts over."""
        before = work.seconds
        while not work.finished:
            recorder = Recorder(work=work, progress=self.progress, number=number, examples=len(x))
            try:
                broken = attack_block(
                    self.net,
                    x,
                    y,
                    spec=self.spec,
                    seed=self.spec.block_seed(number),
                    observer=recorder,
                    chunk=self.chunk,
                    check=number == 0,
                    before=work.broken,
                    done=work.done,
                )
                recorder.keep(broken)
            except (torch.OutOfMemoryError, RuntimeError) as error:
                if not _is_memory(error):
                    raise
                self.chunk = _half(self.chunk or len(x))
                work.warnings = [*work.warnings, _memory_warning(self.chunk)]
        self.progress.block(len(x), work.broken.count(ROBUST), computed=work.seconds - before)
        return work.result(number)


@dataclass(kw_only=True)
class Recorder(Observer):
    """Shows how a block goes, and saves after each attack its answers, its warnings and what it cost."""

    work: Work
    progress: Progress
    number: int
    examples: int
    warnings: list[AttackWarning] = field(default_factory=list)
    since: float = field(default_factory=time.perf_counter)
    count: int = 0

    def begin(self, attack: str, robust: int) -> None:
        self.count = 0  # only attacks are counted: what precedes them is computed again when a run goes on
        spec = self.work.spec.attack
        later = spec.names[spec.names.index(attack) :]
        self.progress.attack(attack, self.number, self.examples, robust, passes=robust * sum(map(spec.cost, later)))

    def passes(self, count: int) -> None:
        self.count += count
        self.progress.tick(count)

    def warn(self, warning: AttackWarning) -> None:
        self.warnings.append(warning)

    def end(self, attack: str, broken: Sequence[str]) -> None:
        self.work.done = [*self.work.done, attack]
        self.keep(broken)

    def keep(self, broken: Sequence[str]) -> None:
        """All that happened since the last time."""
        now, work = time.perf_counter(), self.work
        work.broken, work.warnings = list(broken), work.warnings + self.warnings
        work.seconds, work.passes = work.seconds + now - self.since, work.passes + self.count
        self.warnings, self.since, self.count = [], now, 0
        work.save()


def _is_memory(error: BaseException) -> bool:
    return isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in str(error)


def _half(chunk: int) -> int:
    if chunk <= 1:
        raise UserError("out of memory with a single image at a time; free the device's memory or use another device")
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return (chunk + 1) // 2


def _memory_warning(chunk: int) -> AttackWarning:
    message = f"out of memory: the network saw {chunk} images at a time; answers can differ by rounding"
    return AttackWarning(kind="memory", attack="memory", message=message)
