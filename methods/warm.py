"""Start commands without paying for `import torch` each time: `python -m methods.warm methods.train --spec ...`.

At small scales a run computes for seconds, and importing torch takes as long. With SUITE_WARM=1 the command is handed to a server of this
user that has torch loaded (methods/runtime/warm_server.py) and forks a child for it. The client is the command in every respect: its
streams are the child's, a signal is passed on, its death kills the child, its exit code is the child's. The first client starts the
server, which ends after a short idle time. Without SUITE_WARM the module simply runs here, and so it does in a SLURM job, which must
compute inside its own allocation, and wherever no server of this user can be reached. CPU only.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from methods.core import settings
from methods.core.errors import UserError
from methods.runtime import private_socket
from methods.runtime.warm_server import GREETING, SIGNALS, name, run_here

START_SECONDS = 120


def connect(place: Path) -> socket.socket:
    """A connection to the server, which has greeted; it is started if it does not answer."""
    deadline = time.monotonic() + START_SECONDS
    server: subprocess.Popen[bytes] | None = None
    while time.monotonic() < deadline:
        link = private_socket.connect(place, name())
        if link is not None:
            link.settimeout(START_SECONDS)
            try:
                if link.recv(1) == GREETING:
                    link.settimeout(None)
                    return link
            except (ConnectionResetError, TimeoutError):  # it was about to end, or hangs
                pass
            link.close()
        elif server is None or server.poll() is not None:
            # A second server, started in the same moment, sees that it is not alone and ends.
            command, nothing = [sys.executable, "-m", "methods.runtime.warm_server", str(place)], subprocess.DEVNULL
            server = subprocess.Popen(command, start_new_session=True, stdin=nothing, stdout=nothing, stderr=nothing)
        time.sleep(0.05)
    raise UserError(f"{place / name()}: no server answered within {START_SECONDS} s")


def delegate(link: socket.socket, module: str, arguments: list[str]) -> int:
    """Run the command in a child of the server; returns its exit code."""
    request = json.dumps({"module": module, "arguments": arguments, "cwd": str(Path.cwd()), "environ": dict(os.environ)}).encode()
    socket.send_fds(link, [len(request).to_bytes(8, "big")], [0, 1, 2])
    link.sendall(request)
    for number in SIGNALS:
        signal.signal(number, lambda n, _: link.sendall(bytes([n])))
    answer = b""
    while len(answer) < 2:
        received = link.recv(2 - len(answer))
        if not received:
            print("error: the warm server died; run again", file=sys.stderr)
            return 1
        answer += received
    code = int.from_bytes(answer, "big", signed=True)
    if code < 0:  # die as the child died
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


def main(arguments: list[str]) -> int:
    if not arguments:
        print("usage: python -m methods.warm MODULE [ARGUMENT...]", file=sys.stderr)
        return 2
    module, *rest = arguments
    try:
        shared = settings.warm() and sys.platform == "linux" and "SLURM_JOB_ID" not in os.environ
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if shared:
        try:
            link = connect(private_socket.folder())
        except (UserError, OSError) as error:
            print(f"warning: started without a warm server: {error}", file=sys.stderr)
        else:
            return delegate(link, module, rest)
    return run_here(module, rest)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
