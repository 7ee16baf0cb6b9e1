"""The law of random signs, pinned for ever: files that are in use depend on every bit of it."""

import hashlib

import numpy as np
import pytest

from methods.core.signs import LAW, signs


def test_the_definition_holds_bit_by_bit():
    stream = hashlib.shake_256(b"robust-binary-subnets signs 1\n7\nblocks.0.convs.1").digest(3)
    by_hand = [1 if stream[i // 8] >> (i % 8) & 1 else -1 for i in range(19)]
    assert signs(7, "blocks.0.convs.1", 19).tolist() == by_hand


@pytest.mark.parametrize(
    ("seed", "layer", "first", "digest"),
    [
        (0, "stem", "--++-+---+++---+", "456f19074c48cb84a509be4e616d86e2"),
        (0, "head", "+--+---+-++---++", "a841f8973e66fa2976e7c5c51f9541a9"),
        (1, "stem", "---+++--+--++--+", "9564c871d6c38945b654c4cee70012d5"),
        (20221128, "blocks.15.convs.1", "-+++++-++-+---++", "bc6752529cf6086c3d262730318ae92d"),
    ],
)
def test_values_are_pinned_for_ever(seed, layer, first, digest):
    """If this test fails, the code is wrong: never change these values."""
    values = signs(seed, layer, 100_003)
    assert "".join("+" if value > 0 else "-" for value in values[:16]) == first
    assert hashlib.sha256(values.tobytes()).hexdigest()[:32] == digest


def test_the_name_of_the_law_is_pinned():
    assert LAW == "robust-binary-subnets signs 1"


def test_a_shorter_layer_has_the_first_signs_of_a_longer_one():
    assert np.array_equal(signs(3, "stem", 11), signs(3, "stem", 1000)[:11])
    assert signs(3, "stem", 0).size == 0


def test_signs_are_balanced_and_layers_unrelated():
    a, b = signs(0, "stem", 1_000_000).astype(float), signs(0, "head", 1_000_000).astype(float)
    assert abs(a.mean()) < 5e-3  # five standard errors
    assert abs((a * b).mean()) < 5e-3
    assert abs((a * signs(1, "stem", 1_000_000)).mean()) < 5e-3
