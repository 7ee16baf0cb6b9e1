"""`python -m methods.compact predict` computes by kept weights where it can, and says what computed."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from methods.compact import main
from methods.latency import predictor
from methods.networks import compact
from tests.methods.networks.trained import trained


@pytest.fixture
def files(tmp_path, monkeypatch) -> list[str]:
    monkeypatch.setenv("SUITE_ENGINE", "sparse")  # a network this small would be left to torch
    compact.pack(*trained("binary_subnet", precision="binary"), tmp_path / "net.rbs")
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (32, 32, 3), np.uint8)).save(tmp_path / "picture.png")
    return [str(tmp_path / "net.rbs"), str(tmp_path / "picture.png")]


def test_kept_weights_and_dense_convolutions_say_the_same(files, capsys, monkeypatch):
    assert main(["predict", *files]) == 0
    *kept, time = capsys.readouterr().out.splitlines()
    assert time.endswith("by kept weights alone")
    monkeypatch.setattr(predictor, "lacking", lambda: "numba is not installed")
    assert main(["predict", *files]) == 0
    *dense, time = capsys.readouterr().out.splitlines()
    assert time.endswith("by dense convolutions (numba is not installed)")
    assert len(kept) == 5
    for ours, theirs in zip(kept, dense, strict=True):
        assert ours.split()[1:] == theirs.split()[1:]
        assert float(ours.split()[0].rstrip("%")) == pytest.approx(float(theirs.split()[0].rstrip("%")), abs=0.02)
