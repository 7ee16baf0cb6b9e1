"""The interface of the data sets: caps, the shipped sample, the stand-ins, the command."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from methods.core.datasets import DATASETS
from methods.core.errors import UserError
from methods.data import sample
from methods.data.__main__ import main
from methods.data.hashing import sha256
from methods.data.load import load

# SHA-256 of the first 2000 training and 1000 test images and labels of CIFAR-10 (uint8, NHWC, official order).
SAMPLE = {
    "train_images": "48bb9c317980e186b159dcfcb952fa1079e1aa552a1df3ea4b271375dfbe3207",
    "train_labels": "be1c28c816d430be791ef07694742adff327158d0ef082fb990dfadc30a427f0",
    "test_images": "da362006b99671213d1a5d856cab2bedf64d40bad4501630ee60f4ceb2d3ec7f",
    "test_labels": "636a087e604331a0b9dafc94b6e9ade0c9cec72c4400d12473ccdb3e264474c1",
}


def test_sample_is_the_start_of_cifar10(cifar):
    arrays, hashes = sample.read()
    assert hashes == SAMPLE == {key: sha256(array) for key, array in arrays.items()}
    assert arrays["train_images"].shape == (2000, 32, 32, 3)
    assert arrays["train_labels"][:10].tolist() == [6, 9, 9, 4, 1, 1, 2, 7, 8, 3]
    assert cifar.test.labels[:10].tolist() == [3, 8, 8, 0, 6, 6, 1, 6, 3, 1]
    assert (len(cifar.train), len(cifar.val), len(cifar.test)) == (1960, 40, 1000)
    assert cifar.label == "CIFAR-10 sample: first 2000 training and 1000 test images"
    assert (cifar.classes, cifar.shape) == (10, (3, 32, 32))
    assert (cifar.mean, cifar.std) == ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010))
    assert sum(path.stat().st_size for path in sample.FOLDER.iterdir() if path.is_file()) <= 10_000_000


@pytest.mark.parametrize(
    ("name", "counts", "size"),
    [("cifar10", (2008, 40, 1024), 32), ("cifar100", (2008, 40, 1024), 32), ("imagenet100", (502, 10, 256), 224)],
)
def test_stand_in_has_the_shape_of_the_real_data(name, counts, size):
    data = load(name, source="stand-in")
    assert data.label == f"stand-in for {DATASETS[name].title}: synthetic class patterns, not photographs"
    assert (len(data.train), len(data.val), len(data.test)) == counts
    assert data.shape == (3, size, size)
    assert set(data.test.labels.tolist()) == set(range(data.classes))
    batch = next(data.val.batches(batch=4))
    assert batch.x.shape == (4, *data.shape)


def test_stand_in_is_the_same_everywhere_and_for_ever():
    data = load("imagenet100", source="stand-in", train=2, size=64)
    assert sha256(data.train.images().numpy()) == "359f38c42f19b15c9824aa08cde62f9de7542821768fcaf6f5580b67e1b33fc8"


def test_stand_in_classes_can_be_learnt():
    data = load("cifar100", source="stand-in")
    images, labels = data.train.images().float().flatten(1), data.train.labels
    means = torch.stack([images[labels == k].mean(0) for k in range(100)])
    nearest = torch.cdist(data.test.images().float().flatten(1), means).argmin(1)
    assert (nearest == data.test.labels).float().mean() > 0.95


def test_caps_take_the_first_of_each_split(cifar):
    capped = load("cifar10", source="sample", train=100, val=10)
    assert (len(capped.train), len(capped.val), len(capped.test)) == (100, 10, 1000)
    assert torch.equal(capped.train.images(), cifar.train.images()[:100])
    assert torch.equal(capped.val.images(), cifar.val.images()[:10])
    assert capped.label.endswith(" (training on 100, validating on 10)")
    assert capped.fingerprint != cifar.fingerprint
    assert capped.fingerprint == load("cifar10", source="sample", train=100, val=10).fingerprint
    assert len(load("cifar10", source="sample", train=10**6).train) == 1960


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("mnist", {}, r"dataset='mnist' is unknown; allowed: cifar10, cifar100, imagenet100"),
        ("cifar10", {"source": "web"}, r"data\.source='web' is unknown; allowed: full, sample, stand-in"),
        ("cifar100", {"source": "sample"}, r"allowed for cifar100: full, stand-in"),
        ("cifar10", {"source": "sample", "train": 0}, r"data\.train=0"),
        ("cifar10", {"source": "sample", "val": -1}, r"data\.val=-1"),
    ],
)
def test_a_wrong_request_says_what_is_allowed(name, options, message):
    with pytest.raises(UserError, match=message):
        load(name, **options)


@pytest.mark.parametrize(
    ("damage", "culprit"),
    [
        ("truncated", "train.webp: unreadable"),
        ("another picture", "train.webp: contents differ"),
        ("missing", "train.webp: unreadable"),
        ("another label", "sample.json: contents differ"),
        ("not json", "sample.json: not a readable sample index"),
    ],
)
def test_a_damaged_sample_names_the_file(tmp_path, damage, culprit):
    for path in sample.FOLDER.glob("*.*"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    sheet, index = tmp_path / "train.webp", tmp_path / "sample.json"
    if damage == "truncated":
        sheet.write_bytes(sheet.read_bytes()[:100_000])
    elif damage == "another picture":
        sheet.write_bytes((tmp_path / "test.webp").read_bytes())
    elif damage == "missing":
        sheet.unlink()
    elif damage == "another label":
        index.write_text(index.read_text().replace('"train": "6', '"train": "5'))
    else:
        index.write_text("{")
    with pytest.raises(UserError, match=culprit):
        sample.read(tmp_path)


def test_command_writes_a_manifest(tmp_path, capsys):
    out = tmp_path / "new" / "cifar10.json"
    assert main(["--dataset", "cifar10", "--source", "sample", "--out", str(out)]) == 0
    manifest = json.loads(out.read_text())
    assert manifest["label"] == "CIFAR-10 sample: first 2000 training and 1000 test images"
    assert manifest["counts"] == {"train": 1960, "val": 40, "test": 1000}
    assert manifest["sha256s"] == SAMPLE
    assert (manifest["dataset"], manifest["source"], manifest["classes"]) == ("cifar10", "sample", 10)
    assert (manifest["shape"], manifest["origin"]) == ([3, 32, 32], "shipped with the project")
    assert [path.name for path in out.parent.iterdir()] == ["cifar10.json"]
    assert manifest["label"] in capsys.readouterr().out


def test_command_fails_in_one_line_and_leaves_nothing(tmp_path, capsys):
    out = tmp_path / "manifest.json"
    assert main(["--dataset", "cifar11", "--out", str(out)]) == 2
    (tmp_path / "file").write_text("in the way")
    assert main(["--dataset", "cifar10", "--source", "sample", "--out", str(tmp_path / "file" / "x.json")]) == 2
    errors = capsys.readouterr().err.splitlines()
    assert len(errors) == 2
    assert errors[0] == "error: dataset='cifar11' is unknown; allowed: cifar10, cifar100, imagenet100"
    assert errors[1].startswith("error: ")
    assert str(tmp_path / "file") in errors[1]
    assert not out.exists()


def test_loading_a_sample_does_not_import_torchvision():
    code = "import sys; from methods.data.load import load; load('cifar10', source='sample'); sys.exit('torchvision' in sys.modules)"
    root = Path(__file__).parents[3]
    assert subprocess.run([sys.executable, "-c", code], cwd=root).returncode == 0
