"""The words of the commands, what they merge to, and how they refuse."""

from __future__ import annotations

import json
from pathlib import Path

from methods.core import sealed
from methods.evaluate import main
from tests.methods.evaluation.nets import SPEC

EVALUATION = json.dumps({**SPEC, "examples": 90, "block": 20})  # five blocks, the last one short


def shard(run: Path, k: int, n: int, out: Path, spec: str = EVALUATION) -> list[str]:
    return ["run", "--run", str(run), "--spec", spec, "--shard", f"{k}/{n}", "--out", str(out)]


def merged(out: Path, *shards: Path) -> dict:
    assert main(["merge", "--out", str(out), *map(str, shards)]) == 0
    value = sealed.read(out)
    assert value.pop("seconds") > 0
    assert value.pop("sha256")
    return value


def refused(arguments: list[str], message: str, out: Path, capsys) -> None:
    """The command says why in one line, ends with 2 and leaves no file."""
    assert main(arguments) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("error: ")
    assert message in error
    assert not out.exists()
