"""Images of half the side: exact means by hand, every split and source, and what else follows from the size."""

import numpy as np
import pytest
import torch

from methods.attacks.atta import Atta, Canvas
from methods.core import sealed
from methods.core.datasets import DATASETS
from methods.core.errors import UserError
from methods.data import sample
from methods.data.augment import crop_flip
from methods.data.load import load, load_of, split_indices
from methods.data.size import halved, margin, shrunk
from methods.data.split import generator
from methods.evaluate import main as evaluate
from methods.train import run
from methods.training.registry import load_method
from tests.specs import small
from workflow.suite.cost import work


def test_a_pixel_is_the_mean_of_four_rounded_halves_up():
    # Sums 10, 1 | 6, 1018 | 3, 1020: means 2.5, 0.25 | 1.5, 254.5 | 0.75, 255.
    image = torch.tensor([[1, 2, 0, 0], [3, 4, 0, 1], [0, 0, 255, 254], [0, 6, 255, 254], [3, 0, 255, 255], [0, 0, 255, 255]])
    image = image.to(torch.uint8)
    assert halved(image.view(1, 1, 6, 4)).tolist() == [[[[3, 0], [2, 255], [1, 255]]]]


def test_halving_twice_is_not_averaging_sixteen():
    blocks = torch.zeros(1, 1, 4, 4, dtype=torch.uint8)
    blocks[..., ::2, ::2] = 2  # each block of four has the mean 1/2, which becomes 1
    assert shrunk(blocks, 1).tolist() == [[[[1]]]]
    assert shrunk(blocks, 4) is blocks


@pytest.fixture(scope="module")
def tiny():
    return load("cifar10", source="sample", size=16)


def test_every_split_is_made_from_the_verified_arrays(tiny):
    arrays, _ = sample.read()
    train, val = split_indices(2000)
    whole = {"train": arrays["train_images"][train], "val": arrays["train_images"][val], "test": arrays["test_images"]}
    for name, images in whole.items():
        exact = images.astype(np.float64).reshape(-1, 16, 2, 16, 2, 3).mean((2, 4))  # quarters: exact in binary
        expected = np.floor(exact + 0.5).transpose(0, 3, 1, 2)
        assert np.array_equal(getattr(tiny, name).images().numpy(), expected), name
    assert tiny.shape == (3, 16, 16)


def test_the_size_is_in_the_label_and_in_the_fingerprint(tiny):
    whole = load("cifar10", source="sample")
    assert tiny.label == f"{whole.label}, at 16x16 pixels"
    assert tiny.sha256 == whole.sha256
    assert tiny.fingerprint != whole.fingerprint
    assert load("cifar10", source="sample", size=32).fingerprint == whole.fingerprint


def test_stand_ins_are_shrunk_or_made_at_the_size():
    whole, half = (load("cifar100", source="stand-in", train=4, size=size).train.images() for size in (None, 16))
    assert torch.equal(half, halved(whole))
    assert load("imagenet100", source="stand-in", size=64).shape == (3, 64, 64)


@pytest.mark.parametrize(
    ("name", "size", "message"),
    [
        ("cifar10", 64, "data.size=64: allowed for CIFAR-10: 16; leave it out for 32"),
        ("imagenet100", 16, "data.size=16: allowed for ImageNet-100: 64, 96, 128, 160, 192; leave it out for 224"),
    ],
)
def test_other_sizes_are_refused(name, size, message):
    with pytest.raises(UserError, match=message):
        load(name, source="stand-in", size=size)


def test_a_run_may_not_name_the_whole_size():
    assert DATASETS["cifar10"].side({}) == 32
    with pytest.raises(UserError, match="leave it out for 32"):
        DATASETS["cifar10"].side({"size": 32})
    with pytest.raises(UserError, match=r"data\.size=64: allowed for CIFAR-10"):
        small("at", rewrite={"data.size": 64})


def test_the_padding_keeps_its_share_of_the_image():
    assert [margin(side) for side in (16, 32, 64, 224)] == [2, 4, 4, 4]


def test_crops_of_small_images_move_by_two_pixels():
    point = torch.zeros(5000, 1, 16, 16, dtype=torch.uint8)
    point[:, :, 7:9, 7:9] = 1  # in the middle, so that a mirrored image has it in the same place
    hits = crop_flip(point, generator(0)).sum(0)[0]
    rows, columns = (hits.sum(axis).nonzero().squeeze(1).tolist() for axis in (1, 0))
    assert rows == list(range(5, 11))
    assert columns == list(range(5, 11))


def test_perturbation_canvases_have_the_margin_of_the_loader():
    draws = generator(0)
    canvas = Canvas(3, (3, 16, 16), 8 / 255, generator=draws)
    assert canvas.store.shape == (3, 3, 20, 20)
    down, right, _ = Atta(canvas, eps=8 / 255, alpha=4 / 255).draw(4000, draws)
    assert down.unique().tolist() == [0, 1, 2, 3]
    assert right.unique().tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("attack", ["pgd", "fgsm_atta"])
def test_a_run_trains_on_its_size(attack):
    spec = small("binary_subnet", arch="rn18", attack={"name": attack}, rewrite={"data.size": 16})
    data = load_of(spec)
    assert data.shape == (3, 16, 16)
    method = load_method("binary_subnet")(spec, data, device=torch.device("cpu"))
    batch = next(data.train.batches(batch=4, seed=1, augment=method.augment))
    clean, adv = method.adversarial(batch, method.draws("step"))
    assert clean.shape == adv.shape == (4, 3, 16, 16)
    assert 0 < (adv - clean).abs().max() <= 8 / 255 + 1e-6


def test_a_run_is_evaluated_on_its_size(tmp_path):
    run(small("at", arch="rn18", rewrite={"data.size": 16, "train.epochs": 1}), tmp_path, None)
    command = ["run", "--run", str(tmp_path), "--spec", '{"attack": "clean", "examples": 8, "block": 8}', "--out", str(tmp_path / "shard")]
    assert evaluate(command) == 0
    assert sealed.read(tmp_path / "shard")["data"].startswith("CIFAR-10 sample: first 2000 training and 1000 test images, at 16x16 pixels")


def test_the_work_of_a_small_image_is_a_quarter():
    whole, half = (work.network(small("at", rewrite=size)) for size in ({}, {"data.size": 16}))
    assert half.weights == whole.weights
    head = 2 * half.layers[-1].weights
    assert half.flops - head == (whole.flops - head) / 4
