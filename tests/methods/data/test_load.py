"""The interface of the data sets: splits, order, augmentation, caps, the shipped sample, the stand-ins, the command."""

import itertools
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from methods.core.datasets import DATASETS
from methods.core.errors import UserError
from methods.data import sample
from methods.data.__main__ import main
from methods.data.augment import crop_flip, resized_crop_flip
from methods.data.hashing import sha256
from methods.data.load import load, split_indices
from methods.data.split import Batch, TensorSplit, generator

# SHA-256 of the first 2000 training and 1000 test images and labels of CIFAR-10 (uint8, NHWC, official order).
SAMPLE = {
    "train_images": "48bb9c317980e186b159dcfcb952fa1079e1aa552a1df3ea4b271375dfbe3207",
    "train_labels": "be1c28c816d430be791ef07694742adff327158d0ef082fb990dfadc30a427f0",
    "test_images": "da362006b99671213d1a5d856cab2bedf64d40bad4501630ee60f4ceb2d3ec7f",
    "test_labels": "636a087e604331a0b9dafc94b6e9ade0c9cec72c4400d12473ccdb3e264474c1",
}


@pytest.fixture(scope="module")
def cifar():
    return load("cifar10", source="sample")


def same(left, right):
    left, right = list(left), list(right)
    return len(left) == len(right) > 0 and all(
        torch.equal(a, b) for pair in zip(left, right, strict=True) for a, b in zip(*pair, strict=True)
    )


def test_split_is_that_of_the_paper_code():
    train, val = split_indices(50000)
    assert (len(train), len(val)) == (49000, 1000)
    assert val[:5].tolist() == [20308, 37706, 6041, 42143, 23202]
    assert sorted([*train, *val]) == list(range(50000))


@pytest.mark.parametrize(("n", "held_out"), [(2000, 40), (99, 1), (49, 0)])
def test_split_holds_out_two_percent_rounded_down(n, held_out):
    assert len(split_indices(n)[1]) == held_out


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


def test_splits_hold_the_images_of_their_indices(cifar):
    arrays, _ = sample.read()
    train, val = split_indices(2000)
    for split, index in ((cifar.train, train), (cifar.val, val)):
        batch = next(split.batches(batch=len(split)))
        assert np.array_equal((batch.x.permute(0, 2, 3, 1) * 255).round().numpy(), arrays["train_images"][index])
        assert np.array_equal(batch.y.numpy(), arrays["train_labels"][index])


def test_a_batch_is_float_contiguous_and_indexed(cifar):
    batches = list(cifar.train.batches(batch=256, seed=3, augment="crop_flip"))
    assert [len(batch.y) for batch in batches] == [256] * 7 + [168]
    assert all(batch.x.dtype == torch.float32 and batch.x.is_contiguous() for batch in batches)
    assert batches[0].x.shape == (256, 3, 32, 32)
    assert all(batch.x.min() >= 0 and 0.9 < batch.x.max() <= 1 for batch in batches)
    index = torch.cat([batch.index for batch in batches])
    assert sorted(index.tolist()) == list(range(1960))
    assert torch.equal(torch.cat([batch.y for batch in batches]), cifar.train.labels[index])


def test_gather_returns_the_images_at_an_index(cifar):
    batch = next(cifar.train.batches(batch=16, seed=5))
    assert torch.equal(cifar.train.gather(batch.index, "cpu"), batch.x)


@pytest.mark.parametrize("augment", ["none", "crop_flip", "resized_crop_flip"])
def test_an_epoch_resumes_bit_for_bit(augment):
    train = load("cifar10", source="stand-in", train=100).train
    options = {"batch": 16, "seed": 7, "epoch": 2, "augment": augment}
    whole = list(train.batches(**options))
    for start in range(7):
        assert same(train.batches(**options, start=start), whole[start:])
    assert list(train.batches(**options, start=7)) == []
    assert len(list(train.batches(**options, drop_last=True))) == 6
    shares = [list(train.batches(**options, share=(k, 6))) for k in range(6)]
    assert [len(batch.y) for batch in (share[-1] for share in shares)] == [0, 1, 1, 0, 1, 1]
    assert same([Batch(*map(torch.cat, zip(*parts, strict=True))) for parts in zip(*shares, strict=True)], whole)


def test_epochs_and_seeds_differ_and_global_randomness_does_not_matter(cifar):
    def first(**options):
        return [next(cifar.train.batches(batch=64, augment="crop_flip", **options))]

    torch.manual_seed(0)
    base, state = first(seed=1, epoch=0), torch.get_rng_state()
    torch.manual_seed(99)
    assert same(first(seed=1, epoch=0), base)
    torch.manual_seed(0)
    assert torch.equal(torch.get_rng_state(), state)
    assert not torch.equal(first(seed=1, epoch=1)[0].index, base[0].index)
    assert not torch.equal(first(seed=2, epoch=0)[0].index, base[0].index)


def test_every_batch_of_every_epoch_has_draws_of_its_own():
    image = torch.arange(1, 65, dtype=torch.uint8).view(1, 1, 8, 8)
    split = TensorSplit(torch.zeros(64), lambda: image.expand(64, 3, 8, 8))
    options = {"batch": 32, "seed": 1, "augment": "crop_flip"}
    batches = [batch.x for epoch in (0, 1) for batch in split.batches(**options, epoch=epoch)]
    assert len(batches) == 4
    assert not any(torch.equal(a, b) for a, b in itertools.combinations(batches, 2))


def test_without_a_seed_the_order_is_the_splits_own(cifar):
    index = torch.cat([batch.index for batch in cifar.test.batches(batch=300)])
    assert torch.equal(index, torch.arange(1000))


@pytest.mark.parametrize("options", [{"augment": "crop_flip"}, {"augment": "mixup", "seed": 1}, {"batch": 0}, {"start": -1}])
def test_impossible_batches_are_refused_at_once(cifar, options):
    with pytest.raises(ValueError, match=next(iter(options))):
        cifar.train.batches(**{"batch": 4} | options)


def test_generator_streams_are_fixed_and_unrelated():
    # Pinned: another value here would change the order of the images in every training run.
    assert generator(1234, "order", 0).initial_seed() == 8608754324333209763
    streams = [(1, 2), (12,), (1, 2, 0), (2, 1), (1, "2"), (1, -2)]
    draws = {tuple(torch.randint(0, 2**31, (4,), generator=generator(*stream)).tolist()) for stream in streams}
    assert len(draws) == len(streams)


def test_crop_flip_cuts_a_window_from_the_zero_padded_image():
    images = torch.randint(1, 256, (400, 3, 32, 32), dtype=torch.uint8, generator=generator(0))
    padded = np.pad(images.numpy(), ((0, 0), (0, 0), (4, 4), (4, 4)))
    seen = set()
    for before, after in zip(padded, crop_flip(images, generator(1)).numpy(), strict=True):
        found = [
            (down, right, flip)
            for down in range(9)
            for right in range(9)
            for flip in (False, True)
            if np.array_equal(before[:, down : down + 32, right : right + 32][:, :, :: -1 if flip else 1], after)
        ]
        assert len(found) == 1
        seen.add(found[0])
    for part, values in zip(zip(*seen, strict=True), (range(9), range(9), (False, True)), strict=True):
        assert set(part) == set(values)


def test_crop_flip_draws_are_even():
    position = torch.zeros(20000, 1, 33, 33, dtype=torch.uint8)
    position[:, :, 16, 16] = 1
    hits = crop_flip(position, generator(2)).sum(0)[0]
    assert hits.sum() == 20000  # the centre pixel stays inside in every crop
    assert torch.allclose(hits[12:21, 12:21] / 20000, torch.full((9, 9), 1 / 81), atol=0.004)


def test_resized_crop_flip_shows_a_part_of_the_image_in_either_direction():
    ramp = (torch.arange(64) * 4).to(torch.uint8).expand(200, 3, 64, 64).contiguous()
    result = resized_crop_flip(ramp, generator(3))
    assert result.dtype == torch.uint8
    assert result.is_contiguous()
    assert torch.equal(result, result[:, :1, :1].expand_as(result))  # rows and channels stay alike
    steps = result[:, 0, 0].int().diff(dim=1)
    forward, backward = (steps >= 0).all(1), (steps <= 0).all(1)
    assert bool((forward ^ backward).all())
    assert 60 < int(forward.sum()) < 140
    shares = (result[:, 0, 0].int().amax(1) - result[:, 0, 0].int().amin(1)) / 252
    assert 0.2 < shares.min() < 0.4  # sqrt(8 % x 3/4) = 0.24 of the width is the least there is
    assert shares.max() > 0.95


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
