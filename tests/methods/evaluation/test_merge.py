"""Merging: shards that belong together and nothing else, without torch."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from methods.core.revision import ROOT
from methods.evaluate import main
from tests.methods.evaluation.commands import refused, shard

pytestmark = pytest.mark.usefixtures("run")


def test_merge_refuses_what_does_not_belong_together(run, tmp_path, capsys):
    quick = {"attack": "clean", "eps": 0, "examples": 90, "block": 20}
    files = [tmp_path / f"{k}.json" for k in (1, 2)]
    for k, file in enumerate(files, 1):
        assert main(shard(run, k, 2, file, json.dumps(quick))) == 0
    other = tmp_path / "other.json"
    assert main(shard(run, 2, 2, other, json.dumps({**quick, "seed": 1}))) == 0
    out = tmp_path / "merged.json"
    for shards, message in (
        ([files[0]], "the blocks 1, 3 are in none of the 1 shard files"),
        ([files[0], files[0], files[1]], "block 0 is already in"),
        ([files[0], other], "'spec' is"),
        ([files[0], tmp_path / "absent.json"], "absent.json: no such file"),
        ([files[0], run / "train.json"], "the key 'format' is missing"),
    ):
        refused(["merge", "--out", str(out), *map(str, shards)], message, out, capsys)
    files[1].write_text(files[1].read_text()[:100])
    refused(["merge", "--out", str(out), *map(str, files)], "2.json: is damaged, it cannot be read as JSON", out, capsys)


def test_merge_does_without_torch():
    """It runs hundreds of times in a workflow."""
    code = "import sys; from methods.evaluate import main; print(main(['merge', '--out', 'x', 'absent']), 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.split() == ["2", "False"]
