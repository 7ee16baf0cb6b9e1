"""ImageNet-100 on a folder of small pictures that the tests make."""

import json

import numpy as np
import pytest
import torch
from PIL import Image

from methods.core.errors import UserError
from methods.data import imagenet
from methods.data.__main__ import main
from methods.data.load import load, split_indices
from methods.data.split import Batch
from methods.data.torchvision_shim import torchvision

SIZE = 64  # of the crops; the photographs are larger
ODD = {"L": 60, "CMYK": (0, 128, 255, 10), "RGBA": (200, 10, 30, 128), "P": 3}  # forms other than RGB


def picture(label, number):
    """A smooth picture that tells its class by its colour and its number by its shape."""
    height, width = 40 + 7 * number, 64 - 5 * number
    ramp = np.linspace(0, 255, height * width).reshape(height, width)
    return Image.fromarray(np.stack([ramp, 255 - ramp, np.full_like(ramp, 2.5 * label)], axis=2).astype(np.uint8))


@pytest.fixture(scope="session")
def photographs(tmp_path_factory):
    root = tmp_path_factory.mktemp("photographs")
    for part, count in (("train", 3), ("val", 1)):
        for label, wnid in enumerate(imagenet.WNIDS):
            folder = root / "imagenet" / part / wnid
            folder.mkdir(parents=True)
            for number in range(count):
                picture(label, number).save(folder / f"{wnid}_{number}.JPEG", quality=90)
            (folder / "notes.txt").write_text("not a photograph")
    (root / "imagenet" / "train" / "n99999999").mkdir()  # a class of the other 900
    for label, (mode, colour) in enumerate(ODD.items()):
        name = root / "imagenet" / "val" / imagenet.WNIDS[label] / f"odd_{mode}.{'JPEG' if mode in ('L', 'CMYK') else 'png'}"
        Image.new(mode, (50, 40), colour).save(name)
    return root


@pytest.fixture
def broken(tmp_path, photographs):
    """A copy of the folder (by links) that a test may damage."""
    for file in photographs.rglob("*.*"):
        if file.is_file():
            link = tmp_path / file.relative_to(photographs)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(file)
    return tmp_path


def same(left, right):
    left, right = list(left), list(right)
    return len(left) == len(right) > 0 and all(
        torch.equal(a, b) for pair in zip(left, right, strict=True) for a, b in zip(*pair, strict=True)
    )


def test_the_classes_are_the_first_hundred_in_sorted_order():
    assert len(imagenet.WNIDS) == 100
    assert list(imagenet.WNIDS) == sorted(set(imagenet.WNIDS))
    assert (imagenet.WNIDS[0], imagenet.WNIDS[-1]) == ("n01440764", "n01855672")


def test_labels_are_positions_and_the_split_is_two_percent(photographs):
    data = load("imagenet100", root=photographs, workers=0)
    assert (len(data.train), len(data.val), len(data.test)) == (294, 6, 104)
    assert data.label == "ImageNet-100: 300 training and 104 test images"
    assert (data.classes, data.shape) == (100, (3, 224, 224))
    train, val = split_indices(300)
    assert torch.equal(data.train.labels, torch.from_numpy(train // 3))
    assert torch.equal(data.val.labels, torch.from_numpy(val // 3))
    assert (len(load("imagenet100", root=photographs, train=20, val=2).train)) == 20


def test_the_folder_may_be_the_root_itself(photographs):
    whole = load("imagenet100", root=photographs)
    assert load("imagenet100", root=photographs / "imagenet").fingerprint == whole.fingerprint


def test_the_test_transform_is_resize_and_centre_crop(photographs):
    data = load("imagenet100", root=photographs, workers=0)
    batch = next(data.train.batches(batch=3))
    transforms = torchvision().transforms
    expected = transforms.Compose([transforms.Resize(256), transforms.CenterCrop(224), transforms.ToTensor()])
    for x, path in zip(batch.x, data.train.paths, strict=False):
        assert torch.equal(x, expected(Image.open(path)))
    assert torch.equal(data.train.gather(batch.index), batch.x)


def test_every_kind_of_picture_becomes_rgb(photographs):
    test = load("imagenet100", root=photographs, workers=0, size=SIZE).test
    odd = [i for i, path in enumerate(test.paths) if path.name.startswith("odd")]
    images = test.gather(torch.tensor(odd))
    assert images.shape == (4, 3, SIZE, SIZE)
    colours = {test.paths[i].stem: (image[:, 32, 32] * 255).round().tolist() for i, image in zip(odd, images, strict=True)}
    assert colours["odd_L"] == [60, 60, 60]
    assert colours["odd_RGBA"] == [200, 10, 30]
    cyan_free, _, blue = colours["odd_CMYK"][0], colours["odd_CMYK"][1], colours["odd_CMYK"][2]
    assert cyan_free > 230
    assert blue < 20


@pytest.mark.parametrize("augment", ["none", "resized_crop_flip"])
def test_batches_do_not_depend_on_workers_or_on_where_the_epoch_is_resumed(photographs, augment):
    alone, helped = (load("imagenet100", root=photographs, train=50, workers=n, size=SIZE).train for n in (0, 2))
    options = {"batch": 16, "seed": 11, "epoch": 1, "augment": augment}
    torch.manual_seed(5)
    state = torch.get_rng_state()
    whole = list(alone.batches(**options))
    assert torch.equal(torch.get_rng_state(), state)
    assert [len(batch.y) for batch in whole] == [16, 16, 16, 2]
    assert all(batch.x.is_contiguous() and batch.x.dtype == torch.float32 for batch in whole)
    assert not any(batch.x[:16].is_contiguous(memory_format=torch.channels_last) for batch in whole)
    assert all(torch.equal(batch.y, alone.labels[batch.index]) for batch in whole)
    torch.manual_seed(6)
    assert same(helped.batches(**options), whole)
    assert same(helped.batches(**options, start=2), whole[2:])
    assert list(helped.batches(**options, start=4)) == []
    shares = [list(helped.batches(**options, share=(k, 3))) for k in range(3)]
    assert [[len(batch.y) for batch in share] for share in shares] == [[5, 5, 5, 0], [5, 5, 5, 1], [6, 6, 6, 1]]
    assert same([Batch(*map(torch.cat, zip(*parts, strict=True))) for parts in zip(*shares, strict=True)], whole)


def test_random_crops_differ_between_epochs_and_samples(photographs):
    train = load("imagenet100", root=photographs, train=50, workers=0, size=SIZE).train

    def crops(**options):
        images = torch.empty(50, 3, SIZE, SIZE)
        for batch in train.batches(batch=25, augment="resized_crop_flip", **options):
            images[batch.index] = batch.x
        return images

    first, second = crops(seed=1, epoch=0), crops(seed=1, epoch=1)
    assert bool((first != second).flatten(1).any(1).all())
    # The green channel falls from top to bottom and, slightly, from left to right: mirrored crops show the contrary.
    mirrored = (first[:, 1, 0, -1] > first[:, 1, 0, 0]).float().mean()
    assert 0.2 < mirrored < 0.8


def test_crops_with_zero_padding_are_for_small_images(photographs):
    with pytest.raises(ValueError, match="this data set has none, resized_crop_flip"):
        load("imagenet100", root=photographs).train.batches(batch=4, seed=1, augment="crop_flip")


def test_the_manifest_counts_files_and_changes_with_the_list(broken, tmp_path):
    out = tmp_path / "manifest.json"
    command = ["--dataset", "imagenet100", "--root", str(broken), "--out", str(out)]
    assert main(command) == 0
    before = json.loads(out.read_text())
    assert before["counts"] == {"train": 294, "val": 6, "test": 104}
    file = broken / "imagenet" / "val" / imagenet.WNIDS[7] / f"{imagenet.WNIDS[7]}_0.JPEG"
    file.rename(file.with_name("other.JPEG"))
    assert main(command) == 0
    after = json.loads(out.read_text())
    assert after["sha256s"]["train_files"] == before["sha256s"]["train_files"]
    assert after["sha256s"]["val_files"] != before["sha256s"]["val_files"]


def test_missing_classes_are_listed(broken, capsys):
    for part, label in (("train", 4), ("val", 4), ("val", 99)):
        folder = broken / "imagenet" / part / imagenet.WNIDS[label]
        folder.rename(folder.with_name("elsewhere" + folder.name))
    out = broken / "manifest.json"
    assert main(["--dataset", "imagenet100", "--root", str(broken), "--out", str(out)]) == 2
    wnids = f"train/{imagenet.WNIDS[4]}, val/{imagenet.WNIDS[4]}, val/{imagenet.WNIDS[99]}"
    assert capsys.readouterr().err == f"error: {broken / 'imagenet'}: 3 class folders are missing: {wnids}\n"
    assert not out.exists()


def test_an_empty_class_is_named(broken):
    folder = broken / "imagenet" / "train" / imagenet.WNIDS[8]
    for file in folder.glob("*.JPEG"):
        file.unlink()
    with pytest.raises(UserError, match=f"1 class folders hold no photographs: train/{folder.name}"):
        load("imagenet100", root=broken)


def test_without_a_folder_the_message_says_what_is_expected(tmp_path):
    with pytest.raises(UserError, match="no ImageNet here; expected imagenet/train/<wnid>/"):
        load("imagenet100", root=tmp_path)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("damage", ["truncated", "empty", "text"])
def test_an_unreadable_photograph_is_named(broken, workers, damage):
    file = broken / "imagenet" / "val" / imagenet.WNIDS[60] / f"{imagenet.WNIDS[60]}_0.JPEG"
    content = file.read_bytes()
    file.unlink()
    file.write_bytes({"truncated": content[: len(content) // 2], "empty": b"", "text": b"moved permanently"}[damage])
    test = load("imagenet100", root=broken, workers=workers, size=SIZE).test
    with pytest.raises(UserError) as caught:
        list(test.batches(batch=16))
    assert str(caught.value).startswith(f"{file}: unreadable or truncated image (")
    assert "\n" not in str(caught.value)
    with pytest.raises(UserError, match=file.name):
        test.gather(torch.tensor([test.paths.index(file)]))
