"""A little data, for importing a network."""

from __future__ import annotations

import pytest

from methods.data.load import load


@pytest.fixture(scope="module")
def data():
    return load("cifar10", source="sample", train=8, val=8)
