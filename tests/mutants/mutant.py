"""One small fault, and the tests that are meant to notice it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Mutant:
    """In `path` the text `old`, which stands there once, becomes `new`; then at least one of `tests` (pytest's names) must fail."""

    name: str
    path: str
    old: str
    new: str
    tests: tuple[str, ...]

    def applied(self, text: str) -> str:
        """The file with the fault."""
        if text.count(self.old) != 1:
            raise ValueError(f"{self.name}: {self.path} has {text.count(self.old)} times {self.old!r}; allowed: once")
        return text.replace(self.old, self.new)


def in_file(path: str, *tests: str):
    """Mutants of one file: name, old text, new text, and other tests than the usual ones of the file."""

    def mutant(name: str, old: str, new: str, *others: str) -> Mutant:
        return Mutant(name, path, old, new, others or tests)

    return mutant
