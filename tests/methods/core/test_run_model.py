"""A Run is closed and typed: what it may hold and must."""

import copy
from typing import get_args

import pytest
from msgspec import structs

from methods.core.closed import models, tag
from methods.core.errors import UserError
from methods.core.run_check import check_run, missing_keys
from methods.core.run_model import Init, Run
from methods.core.run_spec import expand, merge
from tests.methods.core.whole_run import RUN

FAST = {"name": "fgsm_atta", "step": 0.5}


def test_a_run_becomes_a_typed_value():
    run = check_run(RUN)
    assert run.train.epochs == 4
    assert run.attack.pick == "worst"
    assert run.p is None


@pytest.mark.parametrize(
    "change",
    [
        {"attack": {**FAST, "aligned": True}},
        {"attack": {"name": "trades", "steps": 3, "step": 0.1}},
        {"attack": {"name": "trades", "steps": 3, "step": 0.1, "bn": "eval"}},
        {"attack": {"name": "none"}, "eps": 0},
        {"p": "global", "sparsity": 0.99, "width": 0.125, "parent": "0123456789ab", "phase": "prune"},
        {"p": 0, "sparsity": 0},
        {"data": {"source": "sample", "train": 5, "val": 1, "size": 16}},
        {"train": {**RUN["train"], "compute": "bf16", "epoch_images": 1000, "warmup": 5, "bn_devices": 2}},
        {"train": {**RUN["train"], "optimizer": "sgd", "momentum": 0.9, "schedule": "steps", "milestones": [2, 3]}},
    ],
)
def test_what_a_run_may_hold(change):
    check_run({**RUN, **change})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"attack.stepz": 1}, "attack: unknown key 'stepz'; allowed: bn, name, pick, start, step, steps"),
        ({"attack.start": "gaussian"}, "attack.start: 'gaussian' is not allowed; allowed: uniform, none"),
        ({"attack.pick": "anything"}, "attack.pick: 'anything' is not allowed; allowed: worst, last"),
        ({"attack.bn": True}, "attack.bn: True is not allowed; allowed: train, eval"),
        ({"attack.name": "pdg"}, "attack.name: 'pdg' is not allowed; allowed: pgd, fgsm_atta, trades, none"),
        ({"attack": {**FAST, "steps": 3}}, "attack: unknown key 'steps'; allowed: aligned, name, step"),
        ({"attack": {"name": "none", "step": 0.5}}, "attack: unknown key 'step'; allowed: name"),
        ({"attack": {"name": "trades", "steps": 3, "step": 1, "pick": "last"}}, "unknown key 'pick'; allowed: bn, name, step, steps"),
        ({"attack.step": 0}, "attack.step: 0 is not allowed; allowed: a step size as a fraction of eps, above 0"),
        ({"validate.stesp": 3}, "validate: unknown key 'stesp'; allowed: by, pick, start, step, steps"),
        ({"train.lrr": 3}, "train: unknown key 'lrr'; allowed: batch, bn_devices, compute"),
        ({"train.epochs": 1.5}, "train.epochs: 1.5 is not allowed; allowed: a whole number, at least 1"),
        ({"train.epochs": True}, "train.epochs: True is not allowed"),
        ({"train.compute": "fp16"}, "train.compute: 'fp16' is not allowed; allowed: fp32, bf16"),
        ({"train.schedule": "steps"}, "train: 'schedule: steps' needs 'milestones'"),
        ({"train.optimizer": "sgd"}, "train: 'optimizer: sgd' needs 'momentum'"),
        ({"train.milestones": [3, "x"]}, r"train.milestones\[1\]: 'x' is not allowed; allowed: a number, at least 0"),
        ({"data.size": 0}, "data.size: 0 is not allowed"),
        ({"colour": "red"}, "unknown key 'colour'; allowed: arch, attack, bn_affine"),
        ({"dataset": "mnist"}, "dataset: 'mnist' is not allowed; allowed: cifar10, cifar100, imagenet100"),
        ({"arch": "rn35"}, "arch: 'rn35' is not allowed; allowed: rn18, rn34, rn50, small_rn34_p00"),
        ({"eps": "8/256"}, 'eps: .8/256. is not allowed; allowed: a radius such as "8/255"'),
        ({"eps": "8/255\n"}, "eps: "),
        ({"p": 1.5}, r'p: 1.5 is not allowed; allowed: a number in \[0, 1\], or "global"'),
        ({"p": True}, "p: True is not allowed"),
        ({"lbn": 1}, "lbn: 1 is not allowed; allowed: true or false"),
        ({"train": 3}, "train: 3 is not allowed; allowed: a mapping of batch, bn_devices"),
        ({"parent": "xyz"}, "parent: 'xyz' is not allowed; allowed: the id of a Run"),
    ],
)
def test_a_wrong_run_is_one_clear_message(change, message):
    with pytest.raises(UserError, match=f"^--spec: {message}|^--spec: .*{message}"):
        check_run(merge(RUN, expand(change)), source="--spec")


@pytest.mark.parametrize("key", ["method", "data", "attack", "train.lr", "attack.pick", "attack.name", "validate.step", "data.source"])
def test_a_missing_key_is_named(key):
    run = copy.deepcopy(RUN)
    *path, last = key.split(".")
    part = run
    for step in path:
        part = part[step]
    del part[last]
    assert missing_keys(run) == [key]
    with pytest.raises(UserError, match=f"missing key '{last}'"):
        check_run(run)


def test_nothing_is_missing_from_a_whole_run():
    assert missing_keys(RUN) == []


def test_of_an_attack_another_list_of_keys_is_missing():
    assert missing_keys({**RUN, "attack": {"name": "fgsm_atta"}}) == ["attack.step"]
    assert missing_keys({**RUN, "attack": {"name": "none"}}) == []


def test_the_model_names_what_the_code_has():
    """The torch side keeps lists of its own for the same choices; they agree."""
    from methods.networks import init
    from methods.training.method import ATTACKS

    kinds = {field.name: field.type for field in structs.fields(Init)}
    assert set(get_args(kinds["weights"])) == set(init.WEIGHTS)
    assert set(get_args(get_args(kinds["scores"])[0])) == set(init.SCORES)
    attack = next(field.type for field in structs.fields(Run) if field.name == "attack")
    assert tuple(map(tag, models(attack))) == ATTACKS
