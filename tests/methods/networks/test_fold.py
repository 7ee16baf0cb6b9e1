"""Folding batch norms changes a network by rounding only, and only where it is right."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from methods.evaluation.attacked_net import AttackedNet, ChannelsLast
from methods.networks.fold import fold
from methods.networks.resnet import build


def stirred(net: nn.Module) -> nn.Module:
    """The network with statistics and affine parameters that are not those of a fresh one."""
    generator = torch.Generator().manual_seed(0)
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.5, generator=generator)
            module.running_var.uniform_(0.3, 3, generator=generator)
            if module.affine:
                module.weight.data.uniform_(0.5, 2, generator=generator)
                module.bias.data.normal_(0, 0.5, generator=generator)
    return net.eval()


NETS = {
    "rn18 lbn": {"arch": "rn18", "width": 0.125, "lbn": True},
    "rn18 affine lbn bias": {"arch": "rn18", "width": 0.125, "lbn": True, "bn_affine": True, "head_bias": True},
    "rn50": {"arch": "rn50", "width": 0.125, "bn_affine": True},
    "imagenet stem": {"arch": "rn18", "width": 0.125, "stem": "imagenet"},
    "six channels": {"arch": "small_rn18_p10", "bn_affine": True},
}


@pytest.mark.parametrize("name", NETS)
def test_folded_network_is_the_same_function(name):
    torch.manual_seed(0)
    options = dict(NETS[name])
    net = stirred(build(options.pop("arch"), classes=10, mean=(0.5, 0.4, 0.3), std=(0.2, 0.3, 0.25), **options))
    before = {key: value.clone() for key, value in net.state_dict().items()}
    x = torch.rand(4, 3, 32, 32)
    flat = fold(net)
    assert not any(isinstance(m, nn.BatchNorm2d) for m in flat.modules())
    with torch.no_grad():
        torch.testing.assert_close(flat(x), net(x), rtol=1e-3, atol=1e-3)
        # In double precision what remains is rounding: the functions are equal.
        exact = copy.deepcopy(net).double()
        torch.testing.assert_close(fold(exact)(x.double()), exact(x.double()), rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(AttackedNet(net).dense(x), net(x), rtol=1e-3, atol=1e-3)
    assert all(torch.equal(value, before[key]) for key, value in net.state_dict().items())


def test_attacked_network_runs_channels_last_except_for_the_channel_counts_that_crash():
    assert ChannelsLast(build("rn18", classes=10, width=0.125).eval()).format is torch.channels_last
    assert ChannelsLast(build("small_rn18_p10", classes=10).eval()).format is torch.contiguous_format
    conv = nn.Conv2d(3, 8, 1)
    assert AttackedNet(conv).dense is conv


class Shared(nn.Module):
    """A convolution whose raw output is used twice, one that is called twice, and a batch norm that normalises by the batch."""

    def __init__(self):
        super().__init__()
        self.seen, self.twice, self.batch = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3), nn.Conv2d(4, 4, 3)
        self.norms = nn.ModuleList(nn.BatchNorm2d(4, track_running_stats=i < 3) for i in range(4))

    def forward(self, x):
        raw = self.seen(x)
        x = self.norms[0](raw).relu() + raw
        x = self.norms[2](self.twice(self.norms[1](self.twice(x)).relu()))
        return self.norms[3](self.batch(x)).mean((2, 3))


def test_batch_norms_that_cannot_be_folded_stay():
    torch.manual_seed(0)
    net = stirred_where_tracked(Shared())
    flat = fold(net)
    assert sum(isinstance(m, nn.BatchNorm2d) for m in flat.modules()) == 4
    x = torch.rand(4, 3, 16, 16)
    with torch.no_grad():
        assert torch.equal(flat(x), net(x))


class SharedNorm(nn.Module):
    """One batch norm behind two convolutions: folded into the first, it would be missing at the second."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.norm = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3), nn.BatchNorm2d(4)

    def forward(self, x):
        return self.norm(self.second(self.norm(self.first(x)).relu())).mean((2, 3))


def test_a_norm_that_is_called_twice_stays():
    torch.manual_seed(0)
    net = stirred(SharedNorm())
    flat = fold(net)
    assert sum(isinstance(m, nn.BatchNorm2d) for m in flat.modules()) == 1
    x = torch.rand(4, 3, 16, 16)
    with torch.no_grad():
        assert torch.equal(flat(x), net(x))


def stirred_where_tracked(net: nn.Module) -> nn.Module:
    for norm in net.norms:
        if norm.track_running_stats:
            norm.running_mean.fill_(0.3)
            norm.running_var.fill_(2.0)
    return net.eval()
