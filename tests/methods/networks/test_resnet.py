"""Architectures: the parameter counts of the paper and its code, stems, widths."""

import pytest
import torch

from methods.core.architectures import ARCHS
from methods.core.errors import UserError
from methods.networks.resnet import build, memory_format

# weights alone, weights with affine batch norm, prunable layers
COUNTS = {
    ("rn18", 10, "cifar"): (11_164_352, 11_173_952, 21),
    ("rn34", 10, "cifar"): (21_265_088, 21_282_112, 37),
    ("rn50", 10, "cifar"): (23_467_712, 23_520_832, 54),
    ("rn34", 100, "cifar"): (21_311_168, 21_328_192, 37),
    ("rn34", 100, "imagenet"): (21_318_848, 21_335_872, 37),
    ("small_rn34_p01", 10, "cifar"): (199_198, 201_078, 37),
    ("small_rn34_p10", 10, "cifar"): (214_652, 216_360, 37),
    ("small_rn34_p05", 10, "cifar"): (212_021, 213_891, 37),
    ("small_rn34_p00", 10, "cifar"): (197_678, 199_550, 37),
    ("small_rn34_p01", 100, "imagenet"): (204_568, 206_448, 37),
    ("small_rn18_p01", 10, "cifar"): (99_550, 100_590, 21),
    ("small_rn18_p10", 10, "cifar"): (112_430, 113_390, 21),
    ("small_rn50_p01", 10, "cifar"): (227_718, 233_700, 54),
    ("small_rn50_p10", 10, "cifar"): (239_188, 244_562, 54),
}


@pytest.mark.parametrize(("arch", "classes", "stem"), COUNTS)
def test_parameter_counts(arch, classes, stem):
    net = build(arch, classes=classes, stem=stem, bn_affine=True)
    weights = sum(conv.weight.numel() for _, conv in net.convs())
    assert (weights, sum(p.numel() for p in net.parameters()), len(net.convs())) == COUNTS[arch, classes, stem]
    plain = build(arch, classes=classes, stem=stem)
    assert sum(p.numel() for p in plain.parameters()) == weights, "without affine batch norm the weights are all"


def test_last_batch_norm_is_of_the_same_kind_as_the_others():
    assert build("rn18", classes=10, width=0.125, lbn=True).last_norm.affine is False
    affine = build("rn18", classes=10, width=0.125, lbn=True, bn_affine=True)
    assert affine.last_norm.affine
    assert affine.last_norm.num_features == 10


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("width", [0.0625, 0.125, 0.25, 0.5])
def test_reduced_widths_are_multiples_of_four(arch, width):
    net = build(arch, classes=10, width=width)
    channels = {conv.out_channels for name, conv in net.convs() if name != "head"}
    assert all(c % 4 == 0 and c >= 4 for c in channels)


def test_networks_with_awkward_channel_counts_keep_the_plain_layout():
    assert memory_format(build("small_rn34_p10", classes=10)) == torch.contiguous_format
    assert memory_format(build("small_rn50_p10", classes=10)) == torch.contiguous_format
    assert memory_format(build("rn34", classes=10)) == torch.channels_last


@pytest.mark.parametrize(("threads", "width", "layout"), [(1, 0.125, "last"), (2, 0.125, "plain"), (2, 0.25, "last")])
def test_narrow_networks_keep_the_plain_layout_on_several_threads(threads, width, layout):
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(threads)
        chosen = memory_format(build("rn34", classes=10, width=width))
    finally:
        torch.set_num_threads(before)
    assert chosen == (torch.channels_last if layout == "last" else torch.contiguous_format)


@pytest.mark.parametrize("arch", ["rn18", "rn50", "small_rn34_p10"])
@pytest.mark.parametrize(("stem", "size"), [("cifar", 32), ("imagenet", 64)])
def test_layouts_agree(arch, stem, size):
    """channels_last changes the order of memory, not the answer."""
    torch.manual_seed(0)
    net = build(arch, classes=10, stem=stem, width=0.125, lbn=True, mean=(0.5,) * 3, std=(0.25,) * 3).eval()
    x = torch.rand(2, 3, size, size)
    plain = net(x)
    fast = net.to(memory_format=torch.channels_last)(x.contiguous(memory_format=torch.channels_last))
    assert plain.shape == (2, 10)
    assert torch.allclose(plain, fast, rtol=1e-4, atol=1e-5)


def test_normalisation_is_the_first_operation():
    torch.manual_seed(0)
    bare = build("rn18", classes=10, width=0.125).eval()
    inside = build("rn18", classes=10, width=0.125, mean=(0.4, 0.5, 0.6), std=(0.2, 0.3, 0.4)).eval()
    inside.load_state_dict({**bare.state_dict(), "mean": inside.mean, "std": inside.std})
    x = torch.rand(2, 3, 32, 32)
    assert torch.allclose(inside(x), bare((x - inside.mean) / inside.std))


@pytest.mark.parametrize(
    ("arguments", "message"), [({"arch": "rn19"}, "rn18, rn34"), ({"arch": "rn18", "stem": "svhn"}, "cifar, imagenet")]
)
def test_bad_names_list_the_allowed_ones(arguments, message):
    with pytest.raises(UserError, match=message):
        build(classes=10, **arguments)


def test_an_overflowed_variance_silences_its_channel_but_no_other_infinity_loads():
    from methods.networks.model_file import fill

    net = build("rn18", classes=10, width=0.0625).eval()
    tensors = {name: t.clone() for name, t in net.state_dict().items()}
    tensors["stem_norm.running_var"][0] = torch.inf
    fill(net, tensors, "file")
    with torch.no_grad():
        logits = net(torch.rand(1, 3, 32, 32))
    assert torch.isfinite(logits).all()
    for name, value in (("stem_norm.running_var", torch.nan), ("stem_norm.running_mean", torch.inf), ("stem.weight", torch.inf)):
        broken = {**tensors, name: tensors[name].clone().fill_(value)}
        with pytest.raises(UserError, match=name):
            fill(net, broken, "file")
