"""Commands through the warm server: the same command in every respect, and nothing for another user to see."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import pytest

from methods.core.revision import ROOT
from methods.runtime import private_socket, warm_server
from tests.methods.runtime.strangers import as_stranger, ended, second_user

SECRET = "not for anybody else"


@pytest.fixture
def place():
    """A private folder with a short name."""
    folder = Path(tempfile.mkdtemp(prefix="warm-"))
    yield folder
    for path in folder.glob("*"):
        path.unlink()
    folder.rmdir()


@pytest.fixture
def module(tmp_path):
    """A folder with a module `echo`, and the environment that finds it."""
    (tmp_path / "echo.py").write_text(
        textwrap.dedent("""
            import os, signal, sys, time

            def main(words):
                print("torch" in sys.modules, os.getcwd(), os.environ.get("SECRET"), *words, flush=True)
                print("said", file=sys.stderr, flush=True)
                if "wait" in words:
                    signal.signal(signal.SIGTERM, lambda *_: sys.exit(75))
                    print("ready", flush=True)
                    time.sleep(60)
                if "raise" in words:
                    raise ValueError("as it is")
                return 7
        """)
    )
    return tmp_path


def start(place, module, *words, **more):
    path = os.pathsep.join([str(ROOT), str(module)])
    environ = {**os.environ, "SUITE_WARM": "1", "XDG_RUNTIME_DIR": str(place), "PYTHONPATH": path, "SECRET": SECRET, **more}
    environ.pop("SLURM_JOB_ID", None)
    command = [sys.executable, "-m", "methods.warm", "echo", *words]
    return subprocess.Popen(command, cwd=module, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def answering(place):
    """The number of the server's process."""
    with private_socket.connect(place, warm_server.name()) as link:
        sent = link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, private_socket.CREDENTIALS.size)
        return private_socket.CREDENTIALS.unpack(sent)[0]


@pytest.fixture
def server(place, module):
    """The server's process, started by the first command; gone with the test."""
    process = start(place, module)
    output, errors = process.communicate(timeout=120)
    assert (process.returncode, errors) == (7, "said\n"), errors
    pid = answering(place)
    yield pid
    os.kill(pid, signal.SIGKILL)


def test_a_command_is_itself_in_every_respect(place, module, server):
    process = start(place, module, "one", "two")
    output, errors = process.communicate(timeout=60)
    assert output == f"True {module} {SECRET} one two\n", "torch is loaded already"
    assert errors == "said\n"
    assert process.returncode == 7


def test_a_signal_reaches_the_command(place, module, server):
    process = start(place, module, "wait")
    while process.stdout.readline() != "ready\n":
        assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 75


def test_an_edited_module_is_never_stale(place, module, server):
    (module / "echo.py").write_text("def main(words):\n    return 8\n")
    assert start(place, module).wait(60) == 8


def test_a_killed_server_is_replaced(place, module):
    first = start(place, module, "wait")
    while first.stdout.readline() != "ready\n":
        assert first.poll() is None
    pid = answering(place)
    os.kill(pid, signal.SIGKILL)
    assert first.wait(60) == 1
    assert "the warm server died" in first.stderr.read()
    assert (place / warm_server.name()).exists(), "left by the dead"
    second = start(place, module)
    assert second.wait(120) == 7
    other = answering(place)
    os.kill(other, signal.SIGKILL)
    assert other != pid


@second_user
def test_a_stranger_that_answers_gets_not_a_byte(place, module, tmp_path):
    """It holds the very socket: bound while it was root, then listening as another user."""
    listener = private_socket.bind(place, warm_server.name())
    heard = tmp_path / "heard"
    heard.touch()
    heard.chmod(0o666)

    def answer():
        listener.listen(8)
        while True:
            link, _ = listener.accept()
            with contextlib.suppress(OSError):
                link.sendall(warm_server.GREETING)
                message, descriptors, _, _ = socket.recv_fds(link, 2**16, 3)
                if message or descriptors:
                    heard.write_bytes(message)
                    link.sendall((0).to_bytes(2, "big", signed=True))

    with as_stranger(answer):
        time.sleep(0.5)
        process = start(place, module)
        output, errors = process.communicate(timeout=60)
    assert "a process of another user (number 65534) answers there" in errors
    assert process.returncode == 7, "run here instead"
    assert output.startswith("False"), "run here instead"
    assert heard.read_bytes() == b""


@second_user
def test_a_stranger_that_asks_is_not_heard(place):
    """Even where the folder would let it in."""
    place.chmod(0o755)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(place / "socket"))
    (place / "socket").chmod(0o777)
    listener.listen(8)
    listener.settimeout(30)
    server = warm_server.Server(listener)

    def ask():
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
            link.connect(str(place / "socket"))
            request = json.dumps({"module": "os", "arguments": [], "cwd": "/", "environ": {}}).encode()
            with contextlib.suppress(OSError):
                link.sendall(len(request).to_bytes(8, "big") + request)
            try:
                return 1 if link.recv(1) else 0
            except ConnectionResetError:
                return 0

    with as_stranger(ask) as pid:
        server.accept()
        assert ended(pid) == 0
    assert server.jobs == {}


@second_user
def test_a_stranger_cannot_enter(place, module, server):
    def ask():
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
            try:
                link.connect(str(place / warm_server.name()))
            except PermissionError:
                return 0
        return 1

    with as_stranger(ask) as pid:
        assert ended(pid) == 0
