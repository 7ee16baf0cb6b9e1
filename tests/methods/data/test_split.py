"""Splits: which images they hold, in which order, and what the batches of an epoch are."""

import itertools

import numpy as np
import pytest
import torch

from methods.data import sample
from methods.data.load import load, split_indices
from methods.data.split import Batch, TensorSplit, generator


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
