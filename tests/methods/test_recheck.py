"""A finished network, attacked again on shipped images."""

import json

import pytest

from methods import evaluate, recheck, train
from methods.core import paths, sealed
from tests.specs import small

SPEC = {"attack": {"version": "pgd", "steps": 2, "step": 1.0}, "eps": "8/255", "examples": 24, "block": 8}


@pytest.fixture
def evaluated(tmp_path):
    """A network of the sample, at half the size of the images, with its evaluation in three blocks."""
    folder, result = tmp_path / "run", tmp_path / "result.json"
    train.run(small("binary_subnet", arch="rn18", sparsity=0.9, rewrite={"train.epochs": 1, "data.size": 16}), folder, None)
    words = ["run", "--run", str(folder), "--spec", json.dumps(SPEC), "--shard", "1/1", "--out", str(tmp_path / "shard.json")]
    assert evaluate.main(words) == 0
    assert evaluate.main(["merge", "--out", str(result), str(tmp_path / "shard.json")]) == 0
    return folder, result


def test_a_whole_block_comes_out_as_recorded(evaluated, capsys):
    """The first eight images are the first block: the same images, attack and random numbers, from the compact file alone."""
    folder, result = evaluated
    (folder / paths.MODEL).unlink()
    before, now = recheck.recheck(folder, sealed.read(result), 8)
    assert len(now) == 8
    assert now == before
    assert recheck.main(["--run", str(folder), "--result", str(result), "--examples", "8"]) == 0
    assert "8 of 8 images came out alike" in capsys.readouterr().out


def test_numbers_stand_side_by_side():
    before, now = ("none", "clean", "pgd", "none"), ("none", "clean", "pgd", "pgd")
    lines = recheck.report(before, now, {"n": 500, "robust_acc": 0.25}, 1.0).splitlines()
    assert lines[1].split() == ["clean", "accuracy", "75.0", "%", "75.0", "%"]
    assert lines[2].split() == ["robust", "accuracy", "50.0", "%", "25.0", "%"]
    assert lines[3].strip() == "3 of 4 images came out alike"
    assert lines[4].strip() == "recorded on all 500 images: robust accuracy 25.0 %"


def test_the_result_of_another_network_is_refused(evaluated, capsys):
    folder, result = evaluated
    sealed.write(result, sealed.read(result) | {"model": "another"})
    assert recheck.main(["--run", str(folder), "--result", str(result)]) == 2
    assert "the result is of another network" in capsys.readouterr().err
