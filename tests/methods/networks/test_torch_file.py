"""Files of torch.save: what they hold is read, what they would run is refused in our words."""

from __future__ import annotations

import argparse
import pickle
from pathlib import Path

import pytest
import torch
from torch import nn

from methods.core.errors import UserError
from methods.networks.imported import read_network
from methods.networks.torch_file import read_state


def linear() -> nn.Module:
    return nn.Linear(2, 3)


@pytest.mark.parametrize("wrap", [lambda state: state, lambda state: {"state_dict": state, "epoch": 7, "acc": 0.5}])
@pytest.mark.parametrize("zipped", [True, False])
def test_a_state_dict_bare_or_under_its_key(wrap, zipped, tmp_path):
    net, path = linear(), tmp_path / "weights.pt"
    torch.save(wrap(net.state_dict()), path, _use_new_zipfile_serialization=zipped)
    state = read_state(path)
    assert state.keys() == {"weight", "bias"}
    assert torch.equal(state["weight"], net.weight)
    filled = read_network(path, f"{__name__}:linear")
    assert torch.equal(filled.bias, net.bias)


class Bomb:
    def __reduce__(self):
        return Path.touch, (Path("exploded"),)


REFUSED = {
    "module": (lambda path: torch.save(linear(), path), "holds a Python object (torch.nn.modules.linear.Linear)"),
    "old module": (
        lambda path: torch.save(linear(), path, _use_new_zipfile_serialization=False),
        "holds a Python object (torch.nn.modules.linear.Linear)",
    ),
    "arguments": (
        lambda path: torch.save({"state_dict": linear().state_dict(), "args": argparse.Namespace(a=1)}, path),
        "holds a Python object (argparse.Namespace)",
    ),
    "bomb": (lambda path: torch.save(Bomb(), path), "code from a file is never run here"),
    "bare pickle": (lambda path: path.write_bytes(pickle.dumps(Bomb(), protocol=2)), "code from a file is never run here"),
    "script": (lambda path: torch.jit.script(linear()).save(str(path)), "a TorchScript program"),
    "list": (lambda path: torch.save([1, 2], path), "holds no state dict of tensors"),
    "number beside": (lambda path: torch.save({"weight": torch.ones(2), "epoch": 3}, path), "holds no state dict of tensors"),
    "empty dict": (lambda path: torch.save({}, path), "holds no state dict of tensors"),
    "empty file": (lambda path: path.write_bytes(b""), "not a complete file of torch.save"),
    "junk": (lambda path: path.write_bytes(b"half a downlo"), "not a complete file of torch.save"),
    "folder": (lambda path: path.mkdir(), "cannot be read (Is a directory)"),
    "absent": (lambda path: None, "no such file; look elsewhere"),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", REFUSED)
def test_refusals_are_ours(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write, message = REFUSED[name]
    path = tmp_path / "weights.pt"
    write(path)
    with pytest.raises(UserError) as error:
        read_state(path, absent="look elsewhere")
    text = str(error.value)
    assert text.startswith(f"{path}: ")
    assert message in text
    assert "\n" not in text
    for advice in ("weights_only", "Re-running", "add_safe_globals", "trust"):
        assert advice not in text
    assert not Path("exploded").exists()


@pytest.mark.parametrize("suffix", [".pt", ".pth"])
def test_weights_without_a_network_say_what_to_do(suffix, tmp_path):
    path = tmp_path / f"weights{suffix}"
    torch.save(linear().state_dict(), path)
    with pytest.raises(UserError, match="weights alone; say which network they are of with --net MODULE:FUNCTION"):
        read_network(path)
