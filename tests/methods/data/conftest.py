"""The shipped sample of CIFAR-10."""

import pytest

from methods.data.load import load


@pytest.fixture(scope="module")
def cifar():
    return load("cifar10", source="sample")
