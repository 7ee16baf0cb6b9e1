"""A network that is trained before anything is attacked, and a finished run that holds it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from methods.networks.resnet import Net
from tests.methods.evaluation.nets import one_thread, run_folder, trained


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Iterator[Path]:
    with one_thread():
        yield run_folder(tmp_path_factory.mktemp("runs") / "small.0123456789ab")


@pytest.fixture(scope="module")
def network() -> Iterator[Net]:
    """Trained before anything is attacked: the networks of tests call it where gradients are off."""
    with one_thread():
        yield trained()
