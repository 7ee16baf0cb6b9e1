"""Small look-alikes of CIFAR in the place of the real images, and a machine without a network."""

import numpy as np
import pytest

from methods.data import cifar, cifar_sources
from methods.data.hashing import sha256
from methods.data.torchvision_shim import torchvision
from tests.methods.data.cifar.copies import LABELS, PER_FILE


@pytest.fixture(params=["cifar10", "cifar100"])
def name(request):
    return request.param


@pytest.fixture
def arrays(name, monkeypatch):
    """Random images in the place of the real ones, and their hashes in the place of the real ones."""
    random = np.random.default_rng(0)
    layout = cifar_sources.LAYOUTS[name]
    made = {}
    for part, files in layout.files.items():
        count = PER_FILE * len(files)
        made[f"{part}_images"] = random.integers(0, 256, (count, 32, 32, 3), dtype=np.uint8)
        made[f"{part}_labels"] = random.integers(0, LABELS[name], count, dtype=np.uint8)
    monkeypatch.setitem(cifar.SHA256, name, {key: sha256(array) for key, array in made.items()})
    return made


@pytest.fixture
def no_network(monkeypatch, tmp_path):
    """Neither source of downloads answers."""
    for dataset in ("CIFAR10", "CIFAR100"):
        monkeypatch.setattr(getattr(torchvision().datasets, dataset), "url", (tmp_path / "no such file").as_uri())
    monkeypatch.setenv("PATH", str(tmp_path / "no programs"))
