"""The coder of masks: exact, at most 2 % above the entropy of a random mask, below it where a mask has structure, the same for ever."""

from __future__ import annotations

import hashlib
from math import comb, log2

import numpy as np
import pytest

from methods.core.allocation import adaptive_counts
from methods.core.architectures import layers, shape_of
from methods.networks.compact import mask as masks
from methods.networks.compact import planes, values
from methods.networks.compact.coder import Decoder, Encoder, Meter, rounded


def random_mask(shape: tuple[int, int, int], kept: int, seed: int = 0) -> np.ndarray:
    flat = np.zeros(int(np.prod(shape)), bool)
    flat[np.random.default_rng(seed).permutation(flat.size)[:kept]] = True
    return flat.reshape(shape)


def coded(*given: np.ndarray) -> bytes:
    """The bytes of some masks; they must read back as they are."""
    models = [masks.model_for(mask) for mask in given]
    encoder = Encoder()
    for mask, model in zip(given, models, strict=True):
        masks.code(encoder, mask.shape, int(mask.sum()), model, mask)
    content = encoder.finish()
    decoder = Decoder(content)
    for mask, model in zip(given, models, strict=True):
        assert np.array_equal(masks.code(decoder, mask.shape, int(mask.sum()), model), mask)
    decoder.finish()
    return content


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 2, 1), (5, 7, 9), (4, 3, 49), (130, 70, 9)])
def test_any_mask_reads_back(shape):
    size = int(np.prod(shape))
    for kept in {0, 1, size // 100, size // 2, size - 1, size}:
        coded(random_mask(shape, kept))


def test_random_masks_cost_their_entropy():
    """RN34 at r = 0.99 and p = 0.1, the paper's network: within 2 % of the entropy given the counts, and a little above it."""
    network = layers(shape_of("rn34"), classes=10, image=32)
    counts = adaptive_counts([layer.weights for layer in network], 0.99, 0.1)
    given = [
        random_mask((layer.channels_out, layer.channels_in, layer.kernel**2), kept, seed)
        for seed, (layer, kept) in enumerate(zip(network, counts, strict=True))
    ]
    entropy = sum(masks.entropy(mask.size, int(mask.sum())) for mask in given) / 8
    assert entropy == pytest.approx(184_179, abs=1)
    assert 1 < len(coded(*given)) / entropy < 1.002


def test_entropy_is_the_logarithm_of_the_number_of_masks():
    assert masks.entropy(10, 3) == pytest.approx(log2(120))
    assert masks.entropy(5000, 50) == pytest.approx(log2(comb(5000, 50)))
    assert masks.entropy(7, 0) == pytest.approx(0)


def test_empty_channels_cost_next_to_nothing():
    """Three quarters of the rows and half of the columns are empty: the cost is that of the small mask that is left."""
    inner = random_mask((64, 128, 9), 3000)
    mask = np.zeros((256, 256, 9), bool)
    mask[np.random.default_rng(1).permutation(256)[:64][:, None], np.random.default_rng(2).permutation(256)[:128][None]] = inner
    least = masks.entropy(inner.size, 3000) / 8
    assert least < len(coded(mask)) < 1.12 * least
    assert len(coded(mask)) < 0.85 * masks.entropy(mask.size, 3000) / 8


def test_weights_that_come_together_cost_less():
    rng = np.random.default_rng(0)
    mask = np.zeros((128, 128, 9), bool)
    mask[rng.random((128, 128)) < 0.02, 3:6] = True  # whole rows of a kernel, always the middle one
    assert len(coded(mask)) < 0.45 * masks.entropy(mask.size, int(mask.sum())) / 8


def test_a_bit_costs_what_its_probability_says():
    """Closed form: 1000 bits of probability 1/4, a quarter of them set."""
    bits = np.arange(1000) % 4 == 0
    meter, encoder = Meter(), Encoder()
    for coder in (meter, encoder):
        coder.bits(np.full(1000, 0.25), bits)
    cost = 250 * 2 + 750 * log2(4 / 3)
    assert meter.total == pytest.approx(cost)
    assert 0 <= len(encoder.finish()) - cost / 8 < 8


def test_probabilities_are_exact_and_never_certain():
    assert rounded(np.array([0.0, 1.0, 0.5, 1 / 3])).tolist() == [1 / 65536, 65535 / 65536, 0.5, 21845 / 65536]


def test_bytes_are_pinned_for_ever():
    """Files that exist must stay readable: if this fails, the format has changed and needs another version."""
    assert (
        hashlib.sha256(coded(random_mask((40, 30, 9), 500), random_mask((16, 16, 1), 99))).hexdigest()[:32]
        == "880c3dc36470d6287b058459d181a1eb"
    )


def test_a_model_says_how_different_channels_are():
    mask = random_mask((200, 200, 1), 4000)
    assert min(masks.model_for(mask)) > 8
    mask[100:] = False
    rows, columns = masks.model_for(mask)
    assert rows < 8
    assert columns > 8


def test_bits_of_another_mask_are_refused():
    mask = random_mask((20, 20, 9), 100)
    encoder = Encoder()
    masks.code(encoder, mask.shape, 100, (15, 15), mask)
    for kept in (99, 101, 3000):
        with pytest.raises(ValueError, match=r"a mask of|not those of an encoder"):
            masks.code(Decoder(encoder.finish()), mask.shape, kept, (15, 15))


@pytest.mark.parametrize("levels", [1, 2, 3, 200])
def test_codebooks_read_back_at_about_their_entropy(levels):
    rng = np.random.default_rng(0)
    share = rng.dirichlet(np.ones(levels))
    places = rng.choice(levels, 20_000, p=share)
    encoder = Encoder()
    values.code(encoder, len(places), levels, places)
    content = encoder.finish()
    assert np.array_equal(values.code(Decoder(content), len(places), levels), places)
    counts = np.bincount(places, minlength=levels)
    entropy = -sum(n * log2(n / len(places)) for n in counts if n) / 8
    assert len(content) < 1.01 * entropy + 2 * levels + 8


def test_kinds_of_values():
    signs = np.array([1, -1, 1, 1, -1, 1], np.int8)
    weight = np.float32(0.3) * signs.astype(np.float32)
    assert values.describe(weight, signs).kind == "law"
    assert values.describe(weight, signs).numbers.tolist() == [np.float32(0.3)]
    assert values.describe(weight, None).kind == "codebook"
    assert values.describe(-weight, signs).numbers.tolist() == [-np.float32(0.3), np.float32(0.3)]
    assert values.describe(np.arange(6, dtype=np.float32), signs).kind == "real"


@pytest.mark.parametrize("dtype", ["f4", "f2"])
def test_numbers_keep_every_bit(dtype):
    numbers = np.random.default_rng(0).normal(size=1000).astype(dtype)
    numbers[:3] = np.inf, -0.0, 1e-7
    assert planes.unpacked(planes.packed(numbers), 1000, dtype).tobytes() == numbers.tobytes()
    with pytest.raises(ValueError, match="bytes"):
        planes.unpacked(planes.packed(numbers), 999, dtype)
    with pytest.raises(ValueError, match="bytes"):
        planes.unpacked(planes.packed(numbers), 1001, dtype)


def test_exponents_compress():
    numbers = np.random.default_rng(0).normal(size=10_000).astype("f4")
    assert len(planes.packed(numbers)) < 0.93 * numbers.nbytes


def test_a_small_piece_cannot_become_a_large_one():
    with pytest.raises(ValueError, match="more than the 1000 bytes"):
        planes.inflated(planes.compressed(bytes(10_000_000)), 1000)
