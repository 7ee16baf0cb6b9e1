"""The training command refuses a run that it would train otherwise than it is written."""

import json

import pytest

from methods import train
from methods.core.run_spec import expand, merge
from tests.specs import small


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"attack.stepz": 1}, "attack: unknown key 'stepz'; allowed: bn, name, pick, start, step, steps"),
        ({"validate.stesp": 1}, "validate: unknown key 'stesp'; allowed: by, pick, start, step, steps"),
        ({"attack.start": "gaussian"}, "attack.start: 'gaussian' is not allowed; allowed: uniform, none"),
        ({"options.no_such": 1}, "options: unknown key 'no_such'; allowed: none"),
        ({"train": None}, "missing key 'train'"),
        ({"method": "no_such"}, "unknown 'method: no_such'"),
    ],
)
def test_a_wrong_spec_is_one_line_and_exit_code_2(change, message, tmp_path, capsys):
    spec = merge(small("at", arch="rn18"), expand(change))
    assert train.main(["--spec", json.dumps(spec), "--out", str(tmp_path / "run")]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "run").exists()
