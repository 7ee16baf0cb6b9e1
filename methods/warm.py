"""Start commands without paying for `import torch` each time: `python -m methods.warm methods.train --spec ...`.

At small scales a run computes for seconds, and importing torch takes as long. With SUITE_WARM=1 the command is handed to a server that has
torch loaded and forks a child for it; the child imports the project's own code anew, so an edited file is never stale. The client is
the command in every respect: its streams are the child's, a signal is passed on, its death kills the child, its exit code is the
child's. The first client starts the server, which ends after a short idle time. Without SUITE_WARM the module simply runs here, and so it
does in a SLURM job, which must compute inside its own allocation. CPU only.
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
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from methods.core import settings
from methods.core.errors import UserError

IDLE_SECONDS = 20
START_SECONDS = 120
PR_SET_PDEATHSIG = 1  # Linux: a child does not outlive the server
PRELOADED = ("torch", "torch.nn", "numpy", "safetensors.torch", "pyautoattack")


def address() -> str:
    """An abstract socket name of this user, checkout and interpreter; the kernel frees it with the server."""
    root = Path(__file__).resolve().parent.parent
    key = hashlib.sha256(f"{root} {sys.executable}".encode()).hexdigest()[:16]
    return f"\0suite-warm-{os.getuid()}-{key}"


def command(module: str) -> ModuleType:
    """The module behind `python -m MODULE`: of a package its __main__."""
    loaded = importlib.import_module(module)
    return importlib.import_module(f"{module}.__main__") if hasattr(loaded, "__path__") else loaded


def run_here(module: str, arguments: list[str]) -> int:
    return int(command(module).main(arguments) or 0)


# -- client ---------------------------------------------------------------------------------------------------------------------------


def connect() -> socket.socket:
    """A connection to the server, which is started if it does not answer."""
    deadline, started = time.monotonic() + START_SECONDS, False
    while True:
        link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            link.connect(address())
            return link
        except (ConnectionRefusedError, FileNotFoundError):
            link.close()
        if not started:
            # A second server, started in the same moment, finds the name taken and ends.
            quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            subprocess.Popen([sys.executable, "-m", "methods.warm", "--serve"], start_new_session=True, **quiet)
            started = True
        if time.monotonic() > deadline:
            raise TimeoutError(f"the warm server did not start within {START_SECONDS} s; unset SUITE_WARM")
        time.sleep(0.05)


def delegate(module: str, arguments: list[str]) -> int:
    """Run the command in a child of the server; returns its exit code."""
    link = connect()
    request = json.dumps({"module": module, "arguments": arguments, "cwd": str(Path.cwd()), "environ": dict(os.environ)}).encode()
    socket.send_fds(link, [len(request).to_bytes(8, "big")], [0, 1, 2])
    link.sendall(request)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda n, _: link.sendall(bytes([n])))
    answer = b""
    while len(answer) < 2:
        try:
            part = link.recv(2 - len(answer))
        except InterruptedError:
            continue
        if not part:
            print("error: the warm server died; run again", file=sys.stderr)
            return 1
        answer += part
    code = int.from_bytes(answer, "big", signed=True)
    if code < 0:  # die as the child died
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


# -- server ---------------------------------------------------------------------------------------------------------------------------


@dataclass
class Job:
    link: socket.socket
    pid: int
    pidfd: int


def receive(link: socket.socket) -> tuple[dict, list[int]]:
    header, descriptors, _, _ = socket.recv_fds(link, 8, 3)
    size, body = int.from_bytes(header, "big"), b""
    while len(body) < size:
        part = link.recv(size - len(body))
        if not part:
            raise ConnectionError
        body += part
    return json.loads(body), descriptors


def child(request: dict, descriptors: list[int]) -> None:
    """Become the command."""
    code = 1
    try:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        for target, descriptor in enumerate(descriptors):
            os.dup2(descriptor, target)
        os.chdir(request["cwd"])
        os.environ.clear()
        os.environ.update(request["environ"])
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        import torch

        torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS") or os.cpu_count() or 1))
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
    for name in PRELOADED:
        importlib.import_module(name)
    import torch

    torch.set_num_threads(1)  # no thread pool in the process that forks
    torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)  # the first optimiser imports much of torch; do that here, once


class Server:
    """Forks a child per request and reports its exit; all in one thread, because a process with threads must not fork."""

    def __init__(self, listener: socket.socket):
        self.listener = listener
        self.jobs: dict[int, Job] = {}
        self.watch = selectors.DefaultSelector()
        self.watch.register(listener, selectors.EVENT_READ, self.accept)

    def loop(self) -> None:
        """Serve until nothing has run or been asked for during the idle time."""
        while True:
            events = self.watch.select(IDLE_SECONDS)
            if not events and not self.jobs:
                return
            for key, _ in events:
                key.data()

    def accept(self) -> None:
        link, _ = self.listener.accept()
        try:
            request, descriptors = receive(link)
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
        _, status = os.waitpid(job.pid, 0)
        with contextlib.suppress(OSError):
            job.link.sendall(os.waitstatus_to_exitcode(status).to_bytes(2, "big", signed=True))
        self.watch.unregister(job.pidfd)
        with contextlib.suppress(KeyError):
            self.watch.unregister(job.link)
        job.link.close()
        os.close(job.pidfd)
        del self.jobs[job.pid]


def serve() -> int:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(address())
    except OSError:
        return 0  # another server is there already
    preload()
    listener.listen(64)
    Server(listener).loop()
    return 0


def main(arguments: list[str]) -> int:
    if arguments == ["--serve"]:
        return serve()
    if not arguments:
        print("usage: python -m methods.warm MODULE [ARGUMENT...]", file=sys.stderr)
        return 2
    module, *rest = arguments
    try:
        shared = settings.warm()
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if shared and sys.platform == "linux" and "SLURM_JOB_ID" not in os.environ:
        return delegate(module, rest)
    return run_here(module, rest)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
