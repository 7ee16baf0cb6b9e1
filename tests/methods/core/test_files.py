"""Files that are complete or absent, and torchvision beside any torch."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from methods.core import files
from methods.data.torchvision_shim import _extension_loads, torchvision


def test_a_file_is_replaced_as_a_whole(tmp_path):
    path = tmp_path / "new" / "value.json"
    files.write_json(path, {"b": [1, 2.5], "a": None})
    assert json.loads(path.read_text()) == {"a": None, "b": [1, 2.5]}
    files.write(path, "text\n")
    assert path.read_text() == "text\n"
    files.write(path, b"\x00\xff")
    assert path.read_bytes() == b"\x00\xff"
    assert list(path.parent.iterdir()) == [path]


def test_a_failure_keeps_the_old_file_and_leaves_no_other(tmp_path):
    path = tmp_path / "value"
    path.write_text("old")
    with pytest.raises(RuntimeError), files.replacing(path) as temporary:
        temporary.write_text("half of the ne")
        raise RuntimeError
    with pytest.raises(ValueError, match="JSON"):
        files.write_json(path, float("nan"))
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_new_file_has_ordinary_permissions(tmp_path):
    files.write(tmp_path / "ours", "")
    (tmp_path / "plain").write_text("")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_killed_writer_leaves_no_file_of_that_name(tmp_path):
    code = (
        "import os, sys; from pathlib import Path; from methods.core.files import replacing\n"
        "with replacing(Path(sys.argv[1])) as temporary:\n"
        "    temporary.write_text('half'); os._exit(9)"
    )
    path = tmp_path / "value"
    done = subprocess.run([sys.executable, "-c", code, str(path)], cwd=Path(__file__).parents[3])
    assert done.returncode == 9
    assert not path.exists()


def test_a_scratch_folder_vanishes_with_its_contents(tmp_path):
    with pytest.raises(RuntimeError), files.scratch_folder(tmp_path / "root") as folder:
        (folder / "sub").mkdir()
        (folder / "sub" / "file").write_text("x")
        raise RuntimeError
    assert list((tmp_path / "root").iterdir()) == []


def test_torchvision_works_here():
    module = torchvision()
    assert torchvision() is module
    assert module.transforms.CenterCrop(2) is not None
    assert module.models.resnet18(num_classes=3).fc.out_features == 3


def test_operators_are_declared_only_where_the_extension_does_not_load(tmp_path):
    assert not _extension_loads(tmp_path)
    (tmp_path / "_C.so").write_bytes(b"not a library")
    assert not _extension_loads(tmp_path)
