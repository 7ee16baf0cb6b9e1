"""Number formats that a processor has no units for: refused, or imitated where that is asked for; and what imitating computes."""

import json

import pytest
import torch
from torch import nn

from methods import formats
from methods.core.errors import UserError
from methods.train import run
from methods.training import precision
from tests.specs import small


@pytest.fixture(autouse=True)
def cpu(monkeypatch):
    """A CPU without bfloat16 units, on which nobody asked for anything."""
    monkeypatch.setattr(precision, "has_units", lambda: False)
    monkeypatch.setenv("SUITE_DEVICE", "cpu")
    monkeypatch.delenv("SUITE_IMITATE_BF16", raising=False)


def test_what_the_device_has_is_never_imitated(monkeypatch):
    assert formats.imitated({}) is formats.imitated({"compute": "fp32"}) is False
    monkeypatch.setenv("SUITE_IMITATE_BF16", "1")
    assert formats.imitated({"compute": "bf16"}) is True
    monkeypatch.setattr(precision, "has_units", lambda: True)
    assert formats.imitated({"compute": "bf16"}) is False


def test_the_command_answers_by_its_exit_code(monkeypatch, capsys):
    assert formats.main(["fp32"]) == 0
    assert formats.main(["bf16"]) == 2
    assert "this CPU has no bfloat16 units" in capsys.readouterr().err
    monkeypatch.setenv("SUITE_IMITATE_BF16", "1")
    assert formats.main(["bf16"]) == 0
    assert capsys.readouterr().out == "imitated\n"


def test_a_gpu_is_not_asked_to_imitate(monkeypatch):
    monkeypatch.setenv("SUITE_IMITATE_BF16", "1")
    monkeypatch.setattr(formats, "kind", lambda: "cuda")
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: False)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "Tesla T4")
    with pytest.raises(UserError, match=r"Tesla T4 has no bfloat16 units.*leave 'train.compute' out$"):
        formats.imitated({"compute": "bf16"})


def test_a_training_that_imitated_says_so_and_another_does_not(tmp_path, monkeypatch):
    monkeypatch.setenv("SUITE_IMITATE_BF16", "1")
    for compute in ("bf16", "fp32"):
        run(small("at", arch="rn18", rewrite={"train.compute": compute, "train.epochs": 1}), tmp_path / compute, None)
        made_by = json.loads((tmp_path / compute / "train.json").read_text())["provenance"]
        assert made_by.get("imitated") == ("bf16" if compute == "bf16" else None)


def test_with_units_or_without_a_convolution_rounds_its_inputs_adds_up_in_float32_and_rounds_its_output():
    draws = torch.Generator().manual_seed(3)
    x, weight = torch.randn(8, 32, 8, 8, generator=draws), torch.randn(48, 32, 3, 3, generator=draws)
    lowered = nn.functional.conv2d(x.bfloat16(), weight.bfloat16(), padding=1).double()
    exact = nn.functional.conv2d(x.bfloat16().double(), weight.bfloat16().double(), padding=1)
    # Half a unit of bfloat16 for the output, which float32's sum of 288 products can push over an edge here and there.
    inexact = (lowered - exact).abs() > exact.abs() * 2.0**-8 + 1e-4
    assert not inexact.any()
    nearest = exact.float().bfloat16().double()
    assert (lowered == nearest).double().mean() > 0.99
