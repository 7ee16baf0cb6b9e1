"""Recorded steps of official programs, repeated with the sparse engine computing the network: within the same tolerances."""

from __future__ import annotations

from pathlib import Path

import pytest

from methods.networks.resnet import Net
from methods.sparse.choice import engine_of, unfit
from tests.golden import replay

HERE = Path(__file__).parent
KINDS = ("pgd_train_steps", "fgsm_atta_steps", "trades_steps", "at_fp_steps", "binaryconnect_steps")
KINDS += ("hydra_pretrain_steps", "hydra_prune_steps", "hydra_finetune_steps", "rst_steps", "forward_in_rn18_lbn")


@pytest.fixture
def passes(monkeypatch) -> list[int]:
    """Every network computes by the engine; how many images went through it, call by call."""
    counted: list[int] = []

    def forward(net: Net, x):
        assert unfit(net) is None
        counted.append(len(x))
        return engine_of(net)(x)

    monkeypatch.setattr(Net, "forward", forward)
    return counted


@pytest.mark.parametrize("kind", KINDS)
def test_the_engine_repeats_a_recording(kind, passes):
    path = HERE / f"{kind}.npz"
    checks = replay.repeat(path, replay.kind_of(path, replay.kinds()))
    assert passes
    assert not [check for check in checks if not check.passed]
