"""Masks as figures see them: counts, pictures, the layers that are shown."""

import numpy as np
import pytest

from methods.core import paths
from methods.core.errors import UserError
from tests.workflow import finished
from workflow.suite.figures import mask_plots, needs
from workflow.suite.results import masks


def small_mask():
    """Two outputs, three inputs: the kernel (0, 0) is full, (1, 2) keeps one weight."""
    mask = np.zeros((2, 3, 3, 3), dtype=bool)
    mask[0, 0] = True
    mask[1, 2, 1, 1] = True
    return mask


def test_counts_of_a_mask():
    mask = small_mask()
    assert masks.per_input(mask).tolist() == [9, 0, 1]
    assert masks.per_output(mask).tolist() == [9, 1]
    assert masks.per_kernel(mask).tolist() == [4, 1, 0, 0, 0, 0, 0, 0, 0, 1]
    assert masks.falling(masks.per_input(mask)).tolist() == [9, 1, 0]


def test_a_mask_as_a_picture():
    picture = mask_plots.tall(small_mask())
    assert picture.shape == (6, 9)
    assert picture[:3, :3].all()
    assert picture[4, 7]
    assert picture.sum() == 10


def test_overlap_of_empty_channels():
    first, second = np.ones((4, 4, 3, 3), dtype=bool), np.ones((4, 4, 3, 3), dtype=bool)
    first[[0, 1]] = False
    second[:, [1, 2]] = False
    overlap = masks.overlap(masks.Pair(block=0, first=first, second=second))
    assert (overlap.empty_outputs, overlap.empty_inputs, overlap.both) == (2, 2, 1)
    assert overlap.jaccard == pytest.approx(1 / 3)
    assert overlap.by_chance == pytest.approx(1 / 3)
    full = masks.Pair(block=0, first=np.ones_like(first), second=np.ones_like(first))
    assert masks.overlap(full).jaccard == masks.overlap(full).by_chance == 0


def test_random_pruning_is_sorted_before_it_is_averaged():
    """The expected curve of a 256-channel layer at r = 0.99 is known; averaging first would give 23.04 at every rank."""
    reference = masks.random_reference((256, 256, 3, 3), 5898, simulations=100)
    for mean, sd in (reference.inputs, reference.outputs):
        assert mean.sum() == pytest.approx(5898)
        assert [mean[0], mean[128], mean[255]] == pytest.approx([37.56, 22.94, 10.73], abs=0.8)
        assert (np.diff(mean) <= 0).all()
        assert sd[0] == pytest.approx(2.16, abs=0.6)


@pytest.mark.parametrize(("arch", "width", "block"), [("rn34", 1.0, 8), ("rn34", 0.125, 8), ("rn18", 1.0, 5)])
def test_the_block_that_is_shown(arch, width, block):
    assert masks.square_block(finished.shapes(arch, width), "a file") == block


def test_a_network_without_such_a_block_is_refused():
    with pytest.raises(UserError, match="a file: stage 3 has no block with two square 3x3 convolutions"):
        masks.square_block(finished.shapes("rn50", 0.125), "a file")


def test_a_damaged_model_is_named(demo, folder, tmp_path):
    whole = (folder / paths.model(needs.subject(demo))).read_bytes()
    for content in (whole[:1000], b"", b"\xff" * 100):
        (tmp_path / "model.safetensors").write_bytes(content)
        with pytest.raises(UserError, match="model.safetensors: cannot be read as a model file .*train this Run again"):
            masks.read_pair(tmp_path / "model.safetensors")
    with pytest.raises(UserError, match="gone.safetensors: cannot be read"):
        masks.read_pair(tmp_path / "gone.safetensors")
