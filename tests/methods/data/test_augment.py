"""Augmentations: crops and mirrors by hand, turns and shifts of single baselines against Pillow and by hand."""

import numpy as np
import pytest
import torch
from PIL import Image

from methods.core.errors import UserError
from methods.data.augment import AUGMENTS, crop_flip, crop_flip_rotate, resized_crop_flip, rotate, shift_flip
from methods.data.load import load
from methods.data.split import generator
from tests.baselines.toy_runs import make
from tests.specs import small


def pictures(count: int, side: int = 32) -> torch.Tensor:
    return torch.randint(0, 256, (count, 3, side, side), generator=torch.Generator().manual_seed(5), dtype=torch.uint8)


@pytest.mark.parametrize("degrees", [0.0, 7.3, -15.0, 14.9])
def test_a_turn_is_pillows(degrees):
    """The official loader turns Pillow images: nearest pixels, about the middle, black where nothing is."""
    image = pictures(1)
    ours = rotate(image, torch.tensor([degrees]))[0].permute(1, 2, 0).numpy()
    theirs = np.asarray(Image.fromarray(image[0].permute(1, 2, 0).numpy()).rotate(degrees, Image.Resampling.NEAREST))
    differing = (ours != theirs).any(-1).mean()
    assert differing <= 0.01, "but for pixels that lie half-way"


def test_turns_reach_fifteen_degrees_and_no_further():
    """A white image shows how far it was turned: by the share of black that came in at its corners."""
    white = torch.full((400, 1, 32, 32), 255, dtype=torch.uint8)
    black = (rotate(white, torch.linspace(-15, 15, 400)) == 0).float().mean((1, 2, 3))
    turned = crop_flip_rotate(white, generator(1, "turns"))
    cropped = crop_flip(white, generator(1, "turns"))
    came_in = ((turned == 0) & (cropped == 255)).float().mean((1, 2, 3))
    assert came_in.max() <= black.max() + 0.01
    assert came_in.max() > 0.8 * black.max()
    assert not torch.equal(turned, cropped)


def test_shifts_stay_within_a_tenth_and_repeat_the_edge():
    """A picture whose columns are 0, 8, 16, ...: the middle of a shifted, perhaps mirrored, row says by how many pixels."""
    ramp = (torch.arange(32) * 8).to(torch.uint8).expand(500, 1, 32, 32)
    shifted = shift_flip(ramp.contiguous(), generator(1, "shifts"))
    rows = shifted[:, 0, 5].float()
    mirrored = rows[:, 10] > rows[:, 20]
    rows = torch.where(mirrored[:, None], rows.flip(1), rows)
    pixels = rows[:, 16] / 8 - 16
    assert 0.4 < mirrored.float().mean().item() < 0.6
    assert pixels.abs().max().item() <= 3.2 + 1 / 16
    assert pixels.abs().max().item() > 3
    assert (pixels - pixels.round()).abs().max().item() > 0.3, "between pixels too"
    assert rows.min() == 0
    assert rows.max() == 248, "edges are repeated, nothing black comes in"


@pytest.mark.parametrize("name", AUGMENTS)
def test_images_stay_images_and_draws_decide(name):
    images = pictures(16)
    made = AUGMENTS[name](images, generator(1, "draw"))
    assert made.shape == images.shape
    assert made.dtype == torch.uint8
    assert torch.equal(made, AUGMENTS[name](images, generator(1, "draw")))
    assert not torch.equal(made, AUGMENTS[name](images, generator(2, "draw")))


@pytest.mark.parametrize(
    ("method", "dataset", "attack", "augment"),
    [
        ("flyingbird", "cifar10", "pgd", "crop_flip"),
        ("flyingbird", "cifar100", "pgd", "crop_flip_rotate"),
        ("flyingbird", "cifar100", "fgsm_atta", "none"),
        ("bcs", "cifar10", "pgd", "shift_flip"),
        ("bcs", "cifar10", "fgsm_atta", "none"),
        ("at", "cifar100", "pgd", "crop_flip"),
    ],
)
def test_which_baselines_augment_in_their_own_way(method, dataset, attack, augment):

    spec = small(method, dataset=dataset, arch="rn18", attack={"name": attack})
    assert make(method, spec, load(dataset, source="stand-in", train=8, val=4)).augment == augment


@pytest.mark.parametrize("method", ["flyingbird", "bcs"])
def test_large_images_are_cropped_in_the_usual_way(method):
    spec = small(method, dataset="imagenet100", arch="rn18")
    assert "augment" not in spec["options"]


def test_an_unknown_augmentation_is_refused():
    spec = small("bcs", arch="rn18")
    spec["options"]["augment"] = "mixup"
    with pytest.raises(UserError, match="'options.augment: mixup' is not possible for cifar10; allowed: crop_flip, resized_crop_flip"):
        make("bcs", spec).augment  # noqa: B018


def test_crop_flip_cuts_a_window_from_the_zero_padded_image():
    images = torch.randint(1, 256, (400, 3, 32, 32), dtype=torch.uint8, generator=generator(0))
    padded = np.pad(images.numpy(), ((0, 0), (0, 0), (4, 4), (4, 4)))
    seen = set()
    for before, after in zip(padded, crop_flip(images, generator(1)).numpy(), strict=True):
        windows = [
            (down, right, flip)
            for down in range(9)
            for right in range(9)
            for flip in (False, True)
            if np.array_equal(before[:, down : down + 32, right : right + 32][:, :, :: -1 if flip else 1], after)
        ]
        assert len(windows) == 1
        seen.add(windows[0])
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
