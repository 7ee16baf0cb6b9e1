"""What a run declares is what its network is, or nothing is published."""

import json
from pathlib import Path

import pytest
import torch

from methods import train as command
from methods.binary_subnet import BinarySubnet
from methods.core.allocation import adaptive_counts
from methods.core.errors import UserError
from methods.train import main
from methods.training.declared import check_counts, check_precision
from tests.baselines.toy_runs import make
from tests.specs import small, text

BINARY = {"a": torch.tensor([1.0, -1.0, 0.0]), "b": torch.tensor([0.0, 1.0])}
REAL = {"a": torch.tensor([1.0, -1.0, 0.0]), "b": torch.tensor([0.0, 0.25])}


@pytest.mark.parametrize(("declared", "weights"), [("binary", BINARY), ("fp", REAL), (None, BINARY), (None, REAL)])
def test_a_precision_that_is_true_is_accepted(declared, weights):
    check_precision({} if declared is None else {"precision": declared}, weights)


def test_a_real_valued_network_is_not_binary():
    with pytest.raises(UserError, match="declares 'precision: binary', but its network is fp .layer 'b' has weights like 0.25"):
        check_precision({"precision": "binary"}, REAL)


def test_a_network_of_signs_is_not_full_precision():
    with pytest.raises(UserError, match="declares 'precision: fp', but its network is binary"):
        check_precision({"precision": "fp"}, BINARY)


def test_counts_of_each_layer_or_of_all():
    spec = {"precision": "binary", "sparsity": 0.4, "p": 1.0}
    check_counts(spec, BINARY, [2, 1])
    check_counts(spec, BINARY, 3)
    check_counts(spec, BINARY, None)
    with pytest.raises(UserError, match="'sparsity: 0.4', 'p: 1.0', that is 1 non-zero weights in a, which has 2 .2 of 2 do not agree"):
        check_counts(spec, BINARY, [1, 2])
    with pytest.raises(UserError, match="that is 4 non-zero weights in the network, which has 3"):
        check_counts(spec, BINARY, 4)


def test_real_valued_weights_may_be_zero_by_chance_but_never_too_many():
    check_counts({"precision": "fp"}, REAL, [3, 2])
    with pytest.raises(UserError, match="declares no sparsity, that is 4 non-zero weights in b, which has 1"):
        check_counts({"precision": "fp"}, REAL, [3, 4])
    with pytest.raises(UserError, match="that is 1 non-zero weights in a, which has 2"):
        check_counts({"precision": "fp"}, REAL, [1, 1])


def run(spec: dict, out: Path) -> int:
    return main(["--spec", text(spec), "--out", str(out)])


@pytest.mark.parametrize(
    ("method", "cell", "message"),
    [
        ("at", {"precision": "binary"}, "declares 'precision: binary', but its network is fp"),
        ("binaryconnect", {"precision": "fp"}, "declares 'precision: fp', but its network is binary"),
        ("binary_subnet", {"precision": "fp"}, "declares 'precision: fp', but its network is binary"),
        ("binary_subnet", {"precision": "binary", "init": {"weights": "signed_kc"}}, "declares 'precision: binary', but its network is fp"),
        ("at", {"sparsity": 0.9}, "'sparsity: 0.9': method 'at' prunes nothing"),
        ("trades", {"p": 0.1}, "'p: 0.1': method 'trades' prunes nothing"),
        ("bcs", {"p": 0.1}, "'p: 0.1' is not possible for bcs"),
        ("flyingbird", {"p": 0.1}, "'p: 0.1' is not possible for flyingbird"),
    ],
)
def test_a_false_declaration_ends_the_run_before_it_trains(tmp_path, capsys, monkeypatch, method, cell, message):
    monkeypatch.setattr(command, "train", lambda *_, **__: pytest.fail("hours would have been spent"))
    assert run(small(method, arch="rn18", **cell), tmp_path / "run") == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "run" / "train.json").exists()


def test_a_network_that_is_not_as_declared_is_not_published(tmp_path, capsys, monkeypatch):
    """A method that forgets one weight of one layer while it trains."""
    spec = small("binary_subnet", arch="rn18", sparsity=0.9, rewrite={"train.epochs": 1})

    def forget(self, record):
        weight = self.net.stem.weight.data
        weight[tuple(weight.nonzero()[0])] = 0

    monkeypatch.setattr(BinarySubnet, "after_epoch", forget)
    assert run(spec, tmp_path / "run") == 2
    [stem, *_] = adaptive_counts([conv.weight.numel() for _, conv in make("binary_subnet", spec).net.convs()], 0.9, 0.1)
    assert f"'p: 0.1', that is {stem} non-zero weights in stem, which has {stem - 1}" in capsys.readouterr().err
    assert not (tmp_path / "run" / "model.safetensors").exists()
    assert not (tmp_path / "run" / "train.json").exists()


def test_signed_constants_are_not_called_binary():
    assert small("binary_subnet", init={"weights": "signed_kc"})["precision"] == "fp"
    assert small("binary_subnet")["precision"] == "binary"


@pytest.mark.parametrize(("precision", "bits"), [("fp", 1), ("binary", 8)])
def test_atmc_is_binary_with_one_bit_only(precision, bits):
    spec = small("atmc", arch="rn18", phase="quantised", precision=precision, rewrite={"options.quantiser.bits": bits})
    with pytest.raises(UserError, match=f"declares 'precision: {precision}', but 'options.quantiser.bits' gives {2**bits} values"):
        make("atmc", spec).check_start()


def test_atmc_checks_what_it_stores():
    method = make("atmc", small("atmc", arch="rn18", phase="quantised", precision="binary"))
    tensors, report = dict(method.validated().state_dict()), method.report()
    honest = {**report, "distinct_values_z": [2], "nonzero_w": report["k"]}
    method.check_declared(tensors, honest)
    with pytest.raises(UserError, match="2 values per stored tensor .* but one has 3"):
        method.check_declared(tensors, {**honest, "distinct_values_z": [2, 3]})
    with pytest.raises(UserError, match=f"that is {report['k']} stored entries, but has {report['k'] + 1}"):
        method.check_declared(tensors, {**honest, "nonzero_w": report["k"] + 1})


def test_what_is_published_says_what_was_declared(tmp_path):
    spec = small("binary_subnet", arch="rn18", sparsity=0.9, rewrite={"train.epochs": 1})
    assert run(spec, tmp_path) == 0
    manifest = json.loads((tmp_path / "train.json").read_text())
    assert manifest["report"]["nonzero_per_layer"] == make("binary_subnet", spec).declared_counts(
        [conv.weight.numel() for _, conv in make("binary_subnet", spec).net.convs()]
    )
