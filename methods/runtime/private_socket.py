"""A Unix socket that no other user can reach, take first, or pretend to answer. Linux.

It lies in a folder that only this user can enter: $XDG_RUNTIME_DIR, else one of our own among temporary files. The folder is checked
once it is open and then used through its descriptor, so it cannot be exchanged in between (and its path may be longer than a socket's
name can be). Besides, each side asks the kernel whose process is at the other end before anything is sent.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from methods.core.errors import UserError

CREDENTIALS = struct.Struct("3i")  # process, user, group


def folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Where this user's sockets lie; made if need be. Not a word is said of an $XDG_RUNTIME_DIR that is not this user's, as under sudo."""
    runtime = environ.get("XDG_RUNTIME_DIR")
    if runtime:
        with contextlib.suppress(UserError), opened(Path(runtime)):
            return Path(runtime)
    own = Path(tempfile.gettempdir()) / f"suite-{os.geteuid()}"
    with contextlib.suppress(FileExistsError):
        own.mkdir(mode=0o700)
    return own


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Path]:
    """A way to the folder that leads nowhere else while the block lasts; refused unless it is a folder that only this user can enter."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        raise UserError(f"{path}: no folder of this user ({error.strerror})") from None
    try:
        status = os.fstat(descriptor)
        if status.st_uid != os.geteuid():
            raise UserError(f"{path}: belongs to another user (number {status.st_uid})")
        if status.st_mode & 0o077:
            raise UserError(f"{path}: other users may enter it; chmod 700 {path}")
        yield Path(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)


def connect(place: Path, name: str) -> socket.socket | None:
    """A connection to the process of this user that listens there; none where nobody does."""
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with opened(place) as way:
            link.connect(str(way / name))
        if not ours(link):
            raise UserError(f"{place / name}: a process of another user (number {_user(link)}) answers there")
    except (ConnectionRefusedError, FileNotFoundError):
        link.close()
        return None
    except BaseException:
        link.close()
        raise
    return link


def bind(place: Path, name: str) -> socket.socket:
    """A socket with that name, in the place of one that nobody listens at any more: the caller sees to it that there is none."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with opened(place) as way:
        (way / name).unlink(missing_ok=True)
        listener.bind(str(way / name))
    return listener


def ours(link: socket.socket) -> bool:
    """Whether the process at the other end is one of this user."""
    return _user(link) == os.geteuid()


def _user(link: socket.socket) -> int:
    """The user at the other end: of one that listens as it was then, of one that connects as it was then."""
    _, user, _ = CREDENTIALS.unpack(link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size))
    return user
