"""Ground truth that nobody here wrote: the example network of the AutoAttack authors.

Their logs say 93.70 % clean accuracy on the first 1000 CIFAR-10 test images, and 0.00 % robust accuracy at 8/255 after APGD-CE. The whole
standard evaluation is run, with its full number of iterations, through the command that a user would call.
"""

from __future__ import annotations

import json
from pathlib import Path

import pyautoattack

from methods.evaluate import main


def test_example_network_of_the_autoattack_authors(tmp_path):
    weights = Path(pyautoattack.__file__).parent / "examples" / "model_test.pt"
    out = tmp_path / "result.json"
    network = ["--net", "pyautoattack.examples.resnet:ResNet18", "--fold"]
    data = ["--dataset", "cifar10", "--source", "sample", "--examples", "1000", "--block", "50"]
    assert main(["file", str(weights), *network, *data, "--attack", "standard", "--eps", "8/255", "--out", str(out)]) == 0
    result = json.loads(out.read_text())
    assert (result["n"], result["n_clean"], result["clean_acc"]) == (1000, 937, 0.937)
    assert result["after"]["apgd-ce"] == 0.0
    assert (result["n_robust"], result["robust_acc"]) == (0, 0.0)
    assert result["spec"]["attack"] == "standard"
    assert result["warnings"] == []
