"""A real SLURM of one node, from the distribution's packages: brought up in a folder, and gone with it.

Everything stays in the folder: configuration, munge key, sockets, spool; ports are free ones of the loopback. Nothing in /etc is read or
written. The node claims more CPUs than there are, and two GPUs that are really terminals: SLURM counts and hands out what it is told.
"""

from __future__ import annotations

import contextlib
import os
import platform
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

TOOLS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scancel", "scontrol")
PARTITION, GPU_TYPE = "accelerated", "pretended"

CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SchedulerParameters=batch_sched_delay=0,bf_interval=5
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
ReturnToService=2
MinJobAge=600
KillWait=120
SlurmdParameters=config_overrides
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
GresTypes=gpu
NodeName={host} NodeAddr=127.0.0.1 CPUs=8 RealMemory=64000 Gres=gpu:{gpu_type}:2 State=UNKNOWN
PartitionName=plain Nodes={host} Default=YES MaxTime=INFINITE State=UP
PartitionName={partition} Nodes={host} MaxTime=INFINITE State=UP
"""


def wait(condition: Callable[[], object], what: str, *, seconds: float = 240, pause: float = 0.1) -> object:
    """The first true value of a condition."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"in {seconds} s not seen: {what}")
        time.sleep(pause)
    return value


class Slurm:
    """Commands of the running SLURM; `environ` is what a login shell on it would have."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.environ = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "SBATCH", "SRUN", "SNAKEMAKE"))}
        self.environ["SLURM_CONF"] = str(folder / "slurm.conf")

    def call(self, *words: str) -> str:
        return subprocess.run(words, env=self.environ, capture_output=True, text=True, check=True, timeout=60).stdout

    def answers(self, *words: str) -> str | None:
        try:
            return self.call(*words)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
            return None

    def jobs(self) -> dict[str, dict[str, str]]:
        """Id -> properties as `scontrol show job` prints them, of all jobs ever."""
        jobs = [
            dict(word.split("=", 1) for word in line.split() if "=" in word)
            for line in self.call("scontrol", "-o", "show", "job").splitlines()
        ]
        return {job["JobId"]: job for job in jobs if "JobId" in job}


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


@contextlib.contextmanager
def running(folder: Path) -> Iterator[Slurm]:
    """SLURM while the block lasts."""
    slurm, host = Slurm(folder), platform.node().split(".")[0]
    for name in ("munge", "state", "spool", "bin"):
        (folder / name).mkdir(mode=0o755, parents=True)
    # Snakemake's plugin hides SLURM's variables from the srun inside a job, and with them where the configuration is.
    srun = folder / "bin" / "srun"
    srun.write_text(f'#!/bin/sh\nSLURM_CONF={folder}/slurm.conf exec {shutil.which("srun")} "$@"\n')
    srun.chmod(0o755)
    slurm.environ["PATH"] = os.pathsep.join([str(srun.parent), os.environ["PATH"]])
    values = {"host": host, "folder": folder, "ports": free_ports(2), "partition": PARTITION, "gpu_type": GPU_TYPE}
    (folder / "slurm.conf").write_text(CONFIGURATION.format(**values))
    (folder / "gres.conf").write_text(f"NodeName={host} Name=gpu Type={GPU_TYPE} File=/dev/tty[1-2]\n")
    key = folder / "munge" / "key"
    key.write_bytes(secrets.token_bytes(64))
    key.chmod(0o600)
    munge = {option: f"--{option}={folder}/munge/{name}" for option, name in MUNGE_FILES.items()}
    with contextlib.ExitStack() as stack:
        start = _starter(slurm, stack)
        start("munged", "--foreground", "--force", *munge.values())
        wait((folder / "munge" / "socket").exists, "munged's socket")
        start("slurmctld", "-D")
        wait(lambda: "is UP" in (slurm.answers("scontrol", "ping") or ""), "slurmctld answering")
        start("slurmd", "-D", "-N", host)
        wait(lambda: (slurm.answers("sinfo", "-h", "-o", "%T") or "").startswith("idle"), "the node being idle")
        try:
            yield slurm
        finally:  # jobs first: they would outlive the daemons
            slurm.answers("scancel", "--user=root")
            slurm.answers("scancel", "--signal=KILL", "--full", "--user=root")
            with contextlib.suppress(TimeoutError):
                wait(lambda: slurm.answers("squeue", "-h", "-o", "%i", "-t", "PD,R,CG") == "", "an empty queue", seconds=60)


MUNGE_FILES = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}


def _starter(slurm: Slurm, stack: contextlib.ExitStack) -> Callable[..., None]:
    """start(command...) runs a daemon in the foreground until the stack unwinds."""

    def start(*words: str) -> None:
        log = stack.enter_context((slurm.folder / f"{words[0]}.log").open("w"))
        process = subprocess.Popen(words, env=slurm.environ, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)

        def stop() -> None:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

        stack.callback(stop)

    return start
