"""The server behind methods/warm.py: a process that has torch loaded and forks a child for each command it is asked to run.

All in one thread, because a process with threads must not fork. It ends after a short idle time. A child forgets the project's modules
before it becomes the command, so an edited file is never stale.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import importlib
import json
import os
import selectors
import signal
import socket
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from filelock import FileLock, Timeout

from methods.runtime import private_socket

IDLE_SECONDS = 20
PATIENCE = 30  # seconds for a client to say what it wants
PR_SET_PDEATHSIG = 1  # Linux: a child does not outlive the server
PRELOADED = ("torch", "torch.nn", "numpy", "safetensors.torch", "pyautoattack")
PROJECT = ("methods", "baselines", "workflow")
GREETING = b"+"  # from here on the server answers for the client
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def name() -> str:
    """The socket's name: one for each checkout and interpreter."""
    root = Path(__file__).resolve().parents[2]
    return f"suite-warm-{hashlib.sha256(f'{root} {sys.executable}'.encode()).hexdigest()[:16]}"


def run_here(module: str, arguments: list[str]) -> int:
    """What `python -m MODULE` does: of a package its __main__."""
    loaded: ModuleType = importlib.import_module(module)
    if hasattr(loaded, "__path__"):
        loaded = importlib.import_module(f"{module}.__main__")
    return int(loaded.main(arguments) or 0)


@dataclass
class Job:
    """A child at work, and the client that it works for."""

    link: socket.socket
    pid: int
    pidfd: int


def receive(link: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """What a client asks for, and its three streams."""
    header, descriptors, _, _ = socket.recv_fds(link, 8, 3)
    size, body = int.from_bytes(header, "big"), b""
    while len(body) < size:
        received = link.recv(size - len(body))
        if not received:
            raise ConnectionError
        body += received
    return json.loads(body), descriptors


def child(request: dict[str, Any], descriptors: list[int]) -> None:
    """Become the command."""
    code = 1
    try:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        for target, descriptor in enumerate(descriptors):
            os.dup2(descriptor, target)
        os.chdir(request["cwd"])
        os.environ.clear()
        os.environ.update(request["environ"])
        for number in SIGNALS:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        import torch

        torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS") or os.cpu_count() or 1))
        for loaded in [module for module in sys.modules if module.split(".")[0] in PROJECT]:
            del sys.modules[loaded]
        code = run_here(request["module"], request["arguments"])
    except SystemExit as leave:
        code = leave.code if isinstance(leave.code, int) else 1
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def preload() -> None:
    """Load what the commands need and the project does not change."""
    for module in PRELOADED:
        importlib.import_module(module)
    import torch

    torch.set_num_threads(1)  # no thread pool in the process that forks
    torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)  # the first optimiser imports much of torch; do that here, once


class Server:
    """Forks a child per request and reports its exit."""

    def __init__(self, listener: socket.socket):
        self.listener = listener
        self.jobs: dict[int, Job] = {}
        self.watch = selectors.DefaultSelector()
        self.watch.register(listener, selectors.EVENT_READ, self.accept)

    def loop(self, idle: float = IDLE_SECONDS) -> None:
        """Serve until nothing has run or been asked for during the idle time."""
        while True:
            events = self.watch.select(idle)
            if not events and not self.jobs:
                return
            for key, _ in events:
                key.data()

    def accept(self) -> None:
        """Hear a client of this user, and start what it asks for; another user's is hung up on, unheard."""
        link, _ = self.listener.accept()
        try:
            if not private_socket.ours(link):
                raise ConnectionError
            link.settimeout(PATIENCE)
            link.sendall(GREETING)
            request, descriptors = receive(link)
            link.settimeout(None)
        except (OSError, ValueError):
            link.close()
            return
        pid = os.fork()
        if pid == 0:
            self.listener.close()
            for job in self.jobs.values():
                job.link.close()
            child(request, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        job = self.jobs[pid] = Job(link, pid, os.pidfd_open(pid))
        self.watch.register(link, selectors.EVENT_READ, lambda: self.heard(job))
        self.watch.register(job.pidfd, selectors.EVENT_READ, lambda: self.ended(job))

    def heard(self, job: Job) -> None:
        """Pass a signal on; a client that is gone takes its child along."""
        try:
            message = job.link.recv(1)
        except OSError:
            message = b""
        if not message:
            self.watch.unregister(job.link)
        with contextlib.suppress(ProcessLookupError):
            os.kill(job.pid, message[0] if message else signal.SIGKILL)

    def ended(self, job: Job) -> None:
        """Tell the client how its command ended."""
        _, status = os.waitpid(job.pid, 0)
        with contextlib.suppress(OSError):
            job.link.sendall(os.waitstatus_to_exitcode(status).to_bytes(2, "big", signed=True))
        self.watch.unregister(job.pidfd)
        with contextlib.suppress(KeyError):
            self.watch.unregister(job.link)
        job.link.close()
        os.close(job.pidfd)
        del self.jobs[job.pid]


def serve(place: Path) -> int:
    """Serve in a folder of this user, unless another server does so already."""
    try:
        with private_socket.opened(place), FileLock(place / f"{name()}.lock", timeout=0, mode=0o600):
            listener = private_socket.bind(place, name())
            preload()
            listener.listen(64)
            Server(listener).loop()
            (place / name()).unlink(missing_ok=True)
    except Timeout:
        pass
    return 0


if __name__ == "__main__":
    sys.exit(serve(Path(sys.argv[1])))
