"""The folder of a socket: this user's and closed to others, or refused."""

import os
import stat
import tempfile

import pytest

from methods.core.errors import UserError
from methods.runtime import private_socket
from tests.methods.runtime.strangers import STRANGER, second_user


def test_a_folder_of_its_own_is_private(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = private_socket.folder({})
    assert folder == tmp_path / f"suite-{os.geteuid()}"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert private_socket.folder({"XDG_RUNTIME_DIR": str(tmp_path / "nothing")}) == folder
    tmp_path.chmod(0o755)
    assert private_socket.folder({"XDG_RUNTIME_DIR": str(tmp_path)}) == folder, "one that others may enter"
    tmp_path.chmod(0o700)
    assert private_socket.folder({"XDG_RUNTIME_DIR": str(tmp_path)}) == tmp_path


@pytest.mark.parametrize("kind", ["open", "link", "file"])
def test_a_folder_that_is_not_private_is_refused(tmp_path, kind):
    target = tmp_path / "folder"
    target.mkdir(mode=0o700)
    if kind == "open":
        target.chmod(0o710)
    elif kind == "link":
        target = tmp_path / "link"
        target.symlink_to(tmp_path / "folder")
    else:
        target = tmp_path / "file"
        target.touch(mode=0o600)
    with pytest.raises(UserError, match=f"{target}: (no folder of this user|other users may enter it)"):
        private_socket.connect(target, "socket")
    with pytest.raises(UserError):
        private_socket.bind(target, "socket")


@second_user
def test_a_folder_of_another_user_is_refused(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o700)
    os.chown(folder, STRANGER, STRANGER)
    with pytest.raises(UserError, match=f"{folder}: belongs to another user"):
        private_socket.connect(folder, "socket")
