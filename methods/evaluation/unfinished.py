"""Unfinished work on disk: one small file per block, so that a killed evaluation goes on after the last attack that it finished."""

from __future__ import annotations

import contextlib
import hashlib
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from torch import Tensor

from methods.core import sealed
from methods.core.errors import UserError
from methods.core.eval_result import BlockResult, decode, encode
from methods.core.eval_spec import EvalSpec
from methods.evaluation.observer import AttackWarning

VERSION = 2  # of these files; others are not looked at


@dataclass(frozen=True, kw_only=True)
class Store:
    """A folder of unfinished blocks, each named by all that decides its answers. `folder` None keeps nothing."""

    folder: Path | None = None
    model: str = ""

    def path(self, spec: EvalSpec, number: int, x: Tensor, y: Tensor) -> Path | None:
        if self.folder is None:
            return None
        # The number of examples does not matter to a block, beyond the images that are in it.
        digest = hashlib.sha256(f"{VERSION} {spec.canonical('examples')} {self.model} {number} {tuple(x.shape)}".encode())
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
    """How far a block has come: the attacks that are done, the answers after them, and what they cost."""

    spec: EvalSpec
    path: Path | None
    done: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    warnings: list[AttackWarning] = field(default_factory=list)
    seconds: float = 0.0
    passes: int = 0

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
        kept = {key: saved[key] for key in ("done", "warnings", "seconds", "passes")}
        return cls(spec=spec, path=path, broken=list(decode(saved["broken_by"])), **kept)

    @property
    def finished(self) -> bool:
        return bool(self.broken) and self.done == list(self.spec.attack.names)

    def save(self) -> None:
        if self.path is not None:
            kept = {"done": self.done, "warnings": self.warnings, "seconds": self.seconds, "passes": self.passes}
            sealed.write(self.path, kept | {"broken_by": encode(self.broken, self.spec)})

    def result(self, number: int) -> BlockResult:
        return BlockResult(
            number=number, broken=tuple(self.broken), warnings=tuple(self.warnings), seconds=self.seconds, passes=self.passes
        )
