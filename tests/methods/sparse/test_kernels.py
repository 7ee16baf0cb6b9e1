"""Kernels on whole numbers, where every order of summation gives the same bits: results must equal torch's."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from methods.sparse.geometry import Shape
from methods.sparse.gradient_all import gradient_of_all
from methods.sparse.gradient_some import gradient_of_some
from methods.sparse.layer import Layer
from methods.sparse.layout import Buffer, Extent, Pool, pack, unpack
from methods.sparse.lists import Kept
from methods.sparse.norm import Factors, Normed, add_up, plain
from methods.sparse.sink import Sink
from methods.sparse.sweep import sweep
from methods.sparse.tape import Applied, Map

POOL = Pool()
# images, channels in and out, kernel, stride, height, width, share of kept weights
CASES = [
    (16, 3, 8, 3, 1, 8, 8, 0.5),
    (20, 5, 7, 3, 2, 9, 7, 0.5),
    (3, 5, 7, 1, 2, 8, 6, 0.5),
    (3, 5, 6, 1, 1, 5, 4, 0.5),
    (17, 3, 9, 7, 2, 32, 30, 0.9),
    (33, 64, 64, 3, 1, 12, 20, 0.5),  # so many that lists come in segments
    (5, 40, 30, 3, 2, 2, 2, 0.2),
    (5, 12, 8, 3, 2, 1, 1, 0.4),
    (2, 16, 16, 3, 1, 33, 33, 0.02),
    (1, 8, 10, 1, 1, 1, 1, 1.0),
    (40, 6, 6, 3, 1, 5, 5, 0.0),
]


def whole(draws: np.random.Generator, *shape: int) -> torch.Tensor:
    return torch.from_numpy(draws.integers(-4, 5, shape).astype(np.float32))


def buffer_of(tensor: torch.Tensor) -> Buffer:
    buffer = POOL.take(Extent(*tensor.shape).floats)
    pack(tensor, buffer.array)
    return buffer


class Case:
    """A convolution with its gradients, by torch and by the kernels."""

    def __init__(self, images, channels_in, channels_out, kernel, stride, height, width, share):
        draws = np.random.default_rng(0)
        self.shape = Shape(channels_in, channels_out, kernel, stride, height, width)
        self.x = whole(draws, images, channels_in, height, width).requires_grad_()
        mask = torch.from_numpy(draws.random((channels_out, channels_in, kernel, kernel)) < share)
        self.weight = (whole(draws, *mask.shape) * mask).requires_grad_()
        self.y = F.conv2d(self.x, self.weight, None, stride, (kernel - 1) // 2)
        self.gradient = whole(draws, *self.y.shape)
        self.y.backward(self.gradient)
        self.kept = Kept(self.weight.detach().numpy())

    def map_of(self, tensor: torch.Tensor) -> Map:
        return Map(Extent(*tensor.shape), buffer_of(tensor.detach()), plain(tensor.shape[1]))

    def swept(self, tensor: torch.Tensor, extent: Extent, *, backward: bool, break_even: float) -> torch.Tensor:
        """The convolution of a tensor, or its transpose."""
        geometry = self.shape.backward(extent.blocks) if backward else self.shape.forward(extent.blocks)
        read, out = self.map_of(tensor), POOL.take(extent.floats)
        out.array.fill(np.nan)
        lists = self.kept.lists(self.shape, geometry, backward=backward, break_even=break_even)
        sweep(POOL, read.source(), lists, geometry, Sink(out.address, 0, 0, 0, 0, 0, len(tensor) > 16), extent.blocks)
        return unpack(out.array, extent)

    def applied(self, *, channels_last: bool = False) -> Applied:
        s = self.shape
        conv = nn.Conv2d(s.channels_in, s.channels_out, s.kernel, s.stride, s.pad, bias=False)
        conv.weight.data = self.weight.detach().clone()
        if channels_last:
            conv.to(memory_format=torch.channels_last)
        normed = Normed(None, s.channels_out)
        return Applied(Layer(conv, None), self.kept, s, self.map_of(self.x), Extent(*self.y.shape), None, normed)


@pytest.mark.parametrize("break_even", [1.0, -1.0], ids=["lists", "all"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_convolution_adds_up_its_kept_weights(case, break_even):
    c = Case(*case)
    assert torch.equal(c.swept(c.x, Extent(*c.y.shape), backward=False, break_even=break_even), c.y.detach())


@pytest.mark.parametrize("break_even", [1.0, -1.0], ids=["lists", "all"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_gradient_of_the_input_goes_back_through_them(case, break_even):
    c = Case(*case)
    assert torch.equal(c.swept(c.gradient, Extent(*c.x.shape), backward=True, break_even=break_even), c.x.grad)


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_weight_has_a_gradient(case, channels_last):
    c = Case(*case)
    layer = c.applied(channels_last=channels_last)
    gradient = gradient_of_all(layer, c.map_of(c.gradient), POOL)
    assert torch.equal(gradient, c.weight.grad)
    assert gradient.stride() == layer.layer.conv.weight.stride()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_some_weights_alone_have_a_gradient(case):
    """Whether they are zero at the moment or not."""
    c = Case(*case)
    chosen = (torch.rand(c.weight.shape, generator=torch.Generator().manual_seed(3)) < 0.3).float()
    gradient = gradient_of_some(c.applied(), c.map_of(c.gradient), Kept(chosen.numpy()), POOL)
    assert torch.equal(gradient, c.weight.grad * chosen)


def test_what_is_read_is_scaled_joined_cut_and_written_down():
    """Four images of one pixel: relu(2 * z + 1 - other) by hand, its bits, its copy; the lanes of no image do not enter the sums."""
    z, other = torch.tensor([1.0, -3.0, 2.0, 0.0]).view(4, 1, 1, 1), torch.tensor([1.0, 0.0, 9.0, 1.0]).view(4, 1, 1, 1)
    factors = Factors.rounded(np.array([2.0]), np.array([1.0]), np.array([-1.0]))
    extent = Extent(4, 1, 1, 1)
    bits, copy, out = POOL.take(extent.vectors, np.uint16), POOL.take(extent.floats), POOL.take(extent.floats)
    read = Map(extent, buffer_of(z), factors, buffer_of(other), True, bits, copy)
    shape, kept = Shape(1, 1, 1, 1, 1, 1), Kept(np.full((1, 1, 1, 1), -3, np.float32))
    geometry = shape.forward(1)
    sums = geometry.sums(POOL, 1)
    sink = Sink(out.address, 0, 0, sums.address, 0, 0, False)
    sweep(POOL, read.source(write=True), kept.lists(shape, geometry, backward=False), geometry, sink, 1)
    assert unpack(copy.array, extent).flatten().tolist() == [2.0, 0.0, 0.0, 0.0]
    assert bits.array[0] & 0b1111 == 0b0001
    assert unpack(out.array, extent).flatten().tolist() == [-6.0, 0.0, 0.0, 0.0]
    assert add_up(sums.array, geometry.slots, 1, 4)[0].tolist() == [-6.0, 36.0, 0.0]


def test_a_result_is_joined_cut_and_summed_with_its_partners():
    """By hand: (5 + 1), (5 - 2), cut in the second image; sums of g, of g times 10, 20, of g times 2, 3."""
    extent = Extent(2, 1, 1, 1)
    columns = [torch.tensor(pair).view(2, 1, 1, 1) for pair in ([5.0, 5.0], [1.0, -2.0], [10.0, 20.0], [2.0, 3.0])]
    values, added, partner, second = (buffer_of(column) for column in columns)
    bits, out = POOL.take(1, np.uint16), POOL.take(extent.floats)
    bits.array[:] = 0b01
    shape, kept = Shape(1, 1, 1, 1, 1, 1), Kept(np.ones((1, 1, 1, 1), np.float32))
    geometry = shape.backward(1)
    sums = geometry.sums(POOL, 1)
    sink = Sink(out.address, added.address, bits.address, sums.address, partner.address, second.address, False)
    sweep(POOL, Map(extent, values, plain(1)).source(), kept.lists(shape, geometry, backward=True), geometry, sink, 1)
    assert unpack(out.array, extent).flatten().tolist() == [6.0, 0.0]
    assert add_up(sums.array, geometry.slots, 1, 2)[0].tolist() == [6.0, 60.0, 12.0]
