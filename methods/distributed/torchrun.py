"""This process as torchrun started it: whether, as which of how many, on which device."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from datetime import timedelta

import torch
import torch.distributed as dist

from methods.distributed.world import ALONE, World
from methods.runtime import device as devices

PR_SET_PDEATHSIG = 1  # Linux: a process does not outlive the one that started it
PATIENCE = timedelta(days=7)  # for GPUs that other jobs hold
TIMEOUT = timedelta(minutes=30)  # for a process that computes


def launched() -> bool:
    """Whether torchrun started this process."""
    return dist.is_torchelastic_launched()


def first_process() -> bool:
    """Whether this process will be the first of its run, known before the others are."""
    return not launched() or int(os.environ["RANK"]) == 0


def join() -> tuple[World, torch.device]:
    """Find the other processes, if torchrun started any, and the device of this one."""
    if not launched() or int(os.environ["WORLD_SIZE"]) == 1:
        return ALONE, devices.device()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    kind = devices.kind()
    store, rank, size = next(dist.rendezvous("env://", timeout=PATIENCE))
    device = torch.device("cpu") if kind == "cpu" else _gpu(store)
    backend = "gloo" if kind == "cpu" else "cpu:gloo,cuda:nccl"  # flags are agreed on by the hosts
    dist.init_process_group(backend, store=dist.PrefixStore("suite", store), rank=rank, world_size=size, timeout=TIMEOUT)
    return World(rank=rank, size=size), device


def _gpu(store: dist.Store) -> torch.device:
    """This process's GPU. One process takes those of a whole machine: by ones, two runs could each hold what the other waits for."""
    key, local = f"gpus of node {os.environ['GROUP_RANK']}", int(os.environ["LOCAL_RANK"])
    if local == 0:
        store.set(key, json.dumps(devices.own_gpus(int(os.environ["LOCAL_WORLD_SIZE"]))))
    index = json.loads(store.get(key))[local]
    torch.cuda.set_device(index)
    return torch.device("cuda", index)
