"""The first epoch of a finished Run, repeated."""

import json

import pytest
import torch

from methods import first_epoch, train
from methods.core import files, paths, sealed
from methods.data.load import load
from methods.networks.compact import run_model
from methods.networks.model_file import load_model
from methods.networks.resnet import build
from tests.specs import small


def trained(folder, epochs):
    spec = small("binary_subnet", arch="rn18", sparsity=0.9, rewrite={"train.epochs": epochs})
    train.run(spec, folder, None)
    return {name: conv.weight.detach() != 0 for name, conv in load_model(run_model(folder)[0]).convs()}


@pytest.fixture
def described(tmp_path):
    """A Run of one epoch, whose deployed network is that of its first; and what the command says of it."""
    masks = trained(tmp_path / "run", 1)
    assert first_epoch.main(["--run", str(tmp_path / "run"), "--out", str(tmp_path / "out.json")]) == 0
    return masks, sealed.read(tmp_path / "out.json")


def test_the_only_epoch_repeated_is_the_network(described):
    masks, value = described
    counted = {name: {"inputs": mask.sum((0, 2, 3)).tolist(), "outputs": mask.sum((1, 2, 3)).tolist()} for name, mask in masks.items()}
    assert value["moments"]["first"] == counted
    assert value["moments"]["last"] == counted
    assert value["kept_in_both"]["first"] == {name: int(mask.sum()) for name, mask in masks.items()}
    assert value["loss"]["repeated"] == value["loss"]["recorded"]


def test_training_moves_the_mask_and_keeps_its_counts(described):
    masks, value = described
    start = value["moments"]["start"]
    assert start != value["moments"]["first"]
    assert {name: sum(kept["outputs"]) for name, kept in start.items()} == {name: int(mask.sum()) for name, mask in masks.items()}
    assert sum(value["kept_in_both"]["start"].values()) < sum(value["kept_in_both"]["first"].values())


def test_a_later_epoch_is_another(tmp_path):
    trained(tmp_path / "run", 3)
    assert first_epoch.main(["--run", str(tmp_path / "run"), "--out", str(tmp_path / "out.json")]) == 0
    value = sealed.read(tmp_path / "out.json")
    assert value["loss"]["repeated"] == value["loss"]["recorded"]
    assert value["epochs"] == 3


def test_another_training_is_refused(tmp_path, capsys):
    trained(tmp_path / "run", 1)
    path = tmp_path / "run" / paths.HISTORY
    record = json.loads(path.read_text())
    files.write(path, json.dumps(record | {"train_loss": 1.1 * record["train_loss"]}) + "\n")
    assert first_epoch.main(["--run", str(tmp_path / "run"), "--out", str(tmp_path / "out.json")]) == 2
    assert "the code or the data are not those that trained it" in capsys.readouterr().err
    assert not (tmp_path / "out.json").exists()


@pytest.fixture(scope="module")
def images():
    return load("cifar10", source="sample", val=32, size=16)


def cut(**options):
    """A network whose first block has an inner channel without weights, and two pruned weights behind: of that channel, and of another."""
    torch.manual_seed(0)
    net = build("rn18", classes=10, width=0.125, **options)
    inner, outer = net.blocks[0].convs
    inner.weight.data[0] = 0
    outer.weight.data[0, :2, 0, 0] = 0
    return net, inner.weight[0].numel()


def test_a_channel_without_weights_is_out_of_reach_and_so_is_what_reads_it(images):
    net, size = cut()
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    counts = first_epoch.gradients(net, images)
    assert counts["blocks.0.convs.0"] == {"pruned": size, "without": size, "empty": size, "empty_without": size}
    assert counts["blocks.0.convs.1"] == {"pruned": 2, "without": 1, "empty": 0, "empty_without": 0}
    assert sum(sum(each.values()) for each in counts.values()) == 4 * size + 3, "nothing else is pruned"
    assert all(torch.equal(tensor, before[name]) for name, tensor in net.state_dict().items()), "the network is left as it was"


def test_a_shift_of_the_batch_norm_brings_it_into_reach(images):
    net, size = cut(bn_affine=True)
    net.blocks[0].norms[0].bias.data.fill_(1.0)
    assert first_epoch.gradients(net, images)["blocks.0.convs.0"] == {"pruned": size, "without": 0, "empty": size, "empty_without": 0}


def test_channels_that_nobody_reads_are_empty_on_the_side_of_the_inputs(images):
    net, _ = cut()
    outer = net.blocks[0].convs[1]
    outer.weight.data[:, 0] = 0
    inputs = outer.weight[:, 0].numel()
    assert first_epoch.gradients(net, images)["blocks.0.convs.1"] == {
        "pruned": inputs + 1,
        "without": inputs,
        "empty": inputs,
        "empty_without": inputs,
    }


def test_every_moment_says_which_pruned_weights_have_a_gradient(described):
    masks, value = described
    pruned = {name: int((~mask).sum()) for name, mask in masks.items()}
    for counts in value["gradients"].values():
        assert {name: each["pruned"] for name, each in counts.items()} == pruned
    assert value["gradients"]["first"] == value["gradients"]["last"]
    assert any(each["without"] < each["pruned"] for each in value["gradients"]["start"].values())
