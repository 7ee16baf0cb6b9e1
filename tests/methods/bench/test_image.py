"""The bench of one image compares equal logits, and says what it could not measure."""

import pytest
import torch

from methods.bench import image, sparse
from methods.bench.networks import pruned
from methods.core.errors import UserError


@pytest.fixture(autouse=True)
def insisted(monkeypatch):
    monkeypatch.setenv("SUITE_ENGINE", "sparse")


def test_without_onnx_runtime_torch_is_the_other_side(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(image, "find_spec", lambda name: None)
    monkeypatch.setattr(sparse, "ROWS", {"image": lambda size, repeats: image.one_image(pruned("rn18", width=0.125), repeats)})
    assert sparse.main(["--out", str(tmp_path / "sparse.json"), "--repeats", "2"]) == 0
    printed = capsys.readouterr().out
    assert "x as fast as torch\n" in printed
    assert "not measured: ONNX Runtime: pip install onnxruntime onnx" in printed


def test_both_others_where_they_are_installed():
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    result = image.one_image(pruned("rn18", width=0.125), 2)
    assert list(result["ratio"]) == ["torch", "ONNX Runtime"]
    assert result["missing"] == []


def test_threads_are_as_before_and_other_answers_have_no_ratio(monkeypatch):
    before = torch.get_num_threads()
    monkeypatch.setattr(image, "onnx_runtime", lambda net, x: lambda: net(x) + 1)
    with pytest.raises(UserError, match="no ratio is taken"):
        image.one_image(pruned("rn18", width=0.125), 1)
    assert torch.get_num_threads() == before


def test_what_cannot_be_computed_is_not_measured(monkeypatch):
    monkeypatch.setenv("SUITE_ENGINE", "dense")
    with pytest.raises(UserError, match="SUITE_ENGINE=dense"):
        image.one_image(pruned("rn18", width=0.125), 1)
