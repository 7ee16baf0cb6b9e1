"""Another user, for tests that run as root."""

import contextlib
import os
import signal

import pytest

STRANGER = 65534
second_user = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


@contextlib.contextmanager
def as_stranger(work):
    """Do `work` in a process of another user; its exit code is what `work` returns."""
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setgid(STRANGER)
            os.setuid(STRANGER)
            os._exit(work())
        except BaseException:
            os._exit(99)
    try:
        yield pid
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def ended(pid):
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
