"""Planes, lists and single operations against small cases by hand and torch's own operations."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from methods.latency.kernels import run
from methods.latency.plane import LANES, Plane
from methods.latency.program import FIELDS, Program, factors
from methods.latency.taps import reach, taps
from methods.latency.workspace import Kind, Layout
from tests.methods.sparse.nets import pruned


def test_a_plane_of_two_by_three():
    """Rows of three and a zero, then a row of zeros: 12 floats, so one vector from channel to channel."""
    plane = Plane(2, 3)
    assert (plane.pitch, plane.floats, plane.vectors) == (4, 16, 1)
    assert plane.mask().tolist() == [0b1110111]


def test_masks_name_every_position_once():
    for plane in (Plane(32, 32), Plane(5, 7), Plane(1, 1), Plane(9, 4, 2)):
        assert sum(int(bits).bit_count() for bits in plane.mask()) == plane.height * plane.width
        assert len(plane.mask()) == plane.vectors


@pytest.mark.parametrize("plane", [Plane(4, 4), Plane(32, 32), Plane(3, 5, 2), Plane(1, 1)])
def test_whatever_a_kernel_meets_beyond_the_edges_is_zero(plane):
    """Ones at the positions of three channels: a position's neighbours are ones inside the map and zeros outside."""
    memory = np.zeros(3 * plane.floats + 2 * plane.margin, np.float32)
    for c in range(3):
        for y in range(plane.height):
            at = plane.margin + c * plane.floats + y * plane.pitch
            memory[at : at + plane.width] = 1
    around = range(-plane.border, plane.border + 1)
    for y in range(plane.height):
        for x in range(plane.width):
            at = plane.margin + plane.floats + y * plane.pitch + x
            seen = [memory[at + down * plane.pitch + along] for down in around for along in around]
            inside = [0 <= y + down < plane.height and 0 <= x + along < plane.width for down in around for along in around]
            assert seen == inside


def test_lists_of_a_small_weight():
    weight = np.zeros((2, 2, 3, 3), np.float32)
    weight[0, 1, 0, 2], weight[1, 0, 1, 1], weight[1, 1, 2, 0] = -1, 2.5, 1
    lists = taps(weight, Plane(4, 4), 1)  # a pitch of 5, 32 floats
    assert lists.start.tolist() == [0, 1, 3]
    assert lists.offset.tolist() == [32 - 5 + 1, 0, 32 + 5 - 1]
    assert lists.factor.tolist() == [-1, 2.5, 1]


def test_lists_of_a_stride_of_two():
    """Row -1 is the odd row before, row 1 the odd row here: planes are numbered even-even, even-odd, odd-even, odd-odd."""
    weight = np.ones((1, 1, 3, 3), np.float32)
    offsets = taps(weight, Plane(4, 4), 2).offset.tolist()
    assert offsets == [3 * 32 - 6, 2 * 32 - 5, 3 * 32 - 5, 32 - 1, 0, 32, 3 * 32 - 1, 2 * 32, 3 * 32]


def test_reach():
    assert [reach(*sizes) for sizes in ((3, 1), (1, 1), (3, 2), (1, 2), (7, 2))] == [1, 0, 1, 0, 2]


def test_factors_are_bias_and_batch_norm():
    conv, norm = nn.Conv2d(2, 3, 1), nn.BatchNorm2d(3).eval()
    for tensor in (norm.running_mean, norm.running_var, norm.weight.data, norm.bias.data, conv.bias.data):
        tensor.uniform_(0.5, 2, generator=torch.Generator().manual_seed(len(tensor)))
    x = torch.rand(1, 2, 4, 4)
    scale, shift = (torch.from_numpy(factor).view(1, -1, 1, 1) for factor in factors(conv, norm))
    raw = F.conv2d(x, conv.weight)
    assert torch.allclose(raw * scale + shift, norm(conv(x)), atol=1e-5)


def test_a_place_is_taken_again_by_maps_of_its_kind_only():
    layout, kind = Layout(), Kind(Plane(4, 4), 2)
    first = layout.take(kind)
    layout.give_back(first)
    assert layout.take(Kind(Plane(4, 4), 3)).place != first.place
    assert layout.take(Kind(Plane(4, 4), 2, of=Plane(7, 7))).place != first.place
    assert layout.take(kind) == first


def test_workspaces_are_aligned_zeros():
    layout = Layout()
    layout.take(Kind(Plane(3, 3), 5))
    workspace = layout.workspace()
    assert workspace.ctypes.data % (4 * LANES) == 0
    assert not workspace.any()


@pytest.mark.parametrize(("height", "width"), [(7, 5), (8, 8)])
def test_maxima_are_those_of_torch(height, width):
    program = Program(pruned(width=0.125), 8, 8)
    program.layout, program.operations = Layout(), []
    read = program.layout.take(Kind(Plane(height, width, 2), 3))
    target = program.pooled(read)
    workspace = program.layout.workspace()
    x = torch.rand(3, height, width)
    read.positions(workspace)[...] = x.numpy()
    run(np.array(program.operations, FIELDS), workspace, workspace.ctypes.data)
    assert torch.equal(torch.from_numpy(target.positions(workspace).copy()), F.max_pool2d(x, 3, 2, padding=1))


def test_nothing_is_ever_written_outside_of_the_positions():
    """Every float of a workspace that is no position of a map is still zero after an image."""
    program = Program(pruned("rn50", width=0.125, stem="imagenet"), 37, 42)
    workspace = program.layout.workspace()
    program(np.ones((3, 37, 42), np.float32), workspace)
    assert workspace.any()
    for one in program.layout.maps:
        one.positions(workspace)[...] = 0
    assert not workspace.any()
