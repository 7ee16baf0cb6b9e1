"""The first epoch of a finished Run, repeated."""

import json

import pytest

from methods import first_epoch, train
from methods.core import files, paths, sealed
from methods.networks.compact import run_model
from methods.networks.model_file import load_model
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
