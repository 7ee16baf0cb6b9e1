"""Parts, conditions and texts of Runs, and what a method makes of one."""

import json

import pytest

from methods.core.errors import UserError
from methods.core.options import options_model
from methods.core.run_check import check_condition, check_method, check_part, parse_run, run_keys
from tests.methods.core.whole_run import RUN


@pytest.mark.parametrize("part", [{}, {"attack": {"step": 0.5}}, {"train": {"lr": 1}}, {"p": None}, {"attack": {"name": "pgd"}}])
def test_a_part_may_leave_out_anything(part):
    check_part(part, source="a file")


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"attack": {"stepz": 1}}, "row.attack: unknown key 'stepz'; allowed: aligned, bn, name, pick, start, step, steps"),
        ({"attack": {"name": "fgsm_atta", "pick": "last"}}, "row.attack: unknown key 'pick'; allowed: aligned, step"),
        ({"attack": {"start": "gaussian"}}, "row.attack.start: 'gaussian' is not allowed; allowed: uniform, none"),
        ({"p": float("nan")}, "row: a Run cannot hold the number nan"),
        (["p"], r"row: \['p'\] is not allowed; allowed: a mapping of arch"),
    ],
)
def test_a_wrong_part_is_one_clear_message(part, message):
    with pytest.raises(UserError, match=f"^a file: {message}"):
        check_part(part, source="a file", at="row")


@pytest.mark.parametrize("condition", [{}, {"dataset": ["cifar10", "cifar100"]}, {"attack.name": "pgd", "p": 1.0}, {"options.any": 1}])
def test_conditions_that_a_run_can_meet(condition):
    check_condition(condition, source="a file", at="when")


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ({"datset": "cifar10"}, "when: unknown key 'datset'; allowed: arch"),
        ({"dataset": "cifar11"}, "when.dataset: 'cifar11' is not allowed"),
        ({"dataset": ["cifar10", "cifar11"]}, "when.dataset: 'cifar11' is not allowed"),
        ({"attack.name": "gdp"}, "when.attack.name: 'gdp' is not allowed"),
    ],
)
def test_a_condition_that_no_run_can_meet_is_refused(condition, message):
    with pytest.raises(UserError, match=f"^a file: {message}"):
        check_condition(condition, source="a file", at="when")


def test_all_keys_of_a_run_are_known():
    assert {"attack.aligned", "attack.pick", "train.epoch_images", "train.compute", "data.size", "init.a", "options"} <= set(run_keys())


@pytest.mark.parametrize(
    ("phase", "phases", "message"),
    [
        ("prune", (), "phase: 'prune' is not allowed; allowed: none"),
        ("prun", ("dense", "prune"), "phase: 'prun' is not allowed; allowed: dense, prune"),
        (None, ("dense", "prune"), "missing key 'phase'; allowed: dense, prune"),
    ],
)
def test_a_phase_is_one_of_the_method(phase, phases, message):
    check_method({}, options_model({}), ())
    check_method({"phase": "prune"}, options_model({}), ("dense", "prune"))
    with pytest.raises(UserError, match=f"^--spec: {message}"):
        check_method({"phase": phase} if phase else {}, options_model({}), phases, source="--spec")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "--spec is not JSON"),
        ("[" * 100_000, "--spec is not JSON"),
        ("[1]", "--spec is no JSON object"),
        (json.dumps({**RUN, "colour": 1}), "--spec: unknown key 'colour'"),
        (json.dumps({**RUN, "lbn": None}), "--spec: missing key 'lbn'"),
        (json.dumps({**RUN, "p": float("inf")}), "a Run cannot hold the number inf"),
    ],
)
def test_a_wrong_text_is_one_clear_message(text, message):
    with pytest.raises(UserError, match=f"^{message}"):
        parse_run(text)


def test_a_text_of_a_run_is_taken_as_its_normal_form():
    written = {**RUN, "p": None, "train": {**RUN["train"], "epochs": 4.0}}
    assert parse_run(json.dumps(written)) == RUN
