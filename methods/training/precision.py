"""The number format of training, `train.compute`: float32, or bfloat16 where that is harmless and fast.

With `bf16` the network computes in bfloat16 from its stem to its last block, in attack and training steps: inputs, weights and outputs of
its convolutions and the feature maps between them (`Net.lowered`, by torch's autocast). Products are added up in float32 by the hardware.
In float32 stay the statistics and parameters of batch norms, the classifier, the logits and all losses; what is trained (weights, scores,
latents, factors), its gradients once they have left the convolutions, and the optimiser; images and perturbations, stored ones too. A
weight is rounded again at every pass, so that gradients of several passes are added up in float32. Validation and every evaluation are in
float32 throughout: a network is measured as it will be used.

bfloat16 has the range of float32, so that no loss needs scaling and no tiny value becomes zero, and 8 bits of precision.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from methods.core.errors import UserError
from methods.networks.resnet import Net

UNITS = ("avx512_bf16", "amx_bf16", "bf16")  # of x86 processors, and of ARM's
PROCESSOR = Path("/proc/cpuinfo")


@contextmanager
def computed_in(compute: str, net: Net) -> Iterator[None]:
    """The network in this format for a while, then as it was."""
    before, lowered = getattr(net, "lowered", False), compute == "bf16"
    if lowered == before:  # as a network of others always is: it knows float32 only
        yield
        return
    net.lowered = lowered
    try:
        yield
    finally:
        net.lowered = before


def compute_of(train: Mapping[str, Any]) -> str:
    """The number format of a run's `train` settings."""
    return train.get("compute", "fp32")


def require_units(train: Mapping[str, Any], device: str) -> None:
    """Refuse a run whose format a device ("cpu" or "cuda") can only imitate: that is several times slower than float32, and for nothing.

    A warning would be read when the time is lost; who really wants to wait trains the same run in float32.
    """
    if compute_of(train) != "bf16" or (has_units() if device == "cpu" else torch.cuda.is_bf16_supported(including_emulation=False)):
        return
    name = "this CPU" if device == "cpu" else torch.cuda.get_device_name()
    raise UserError(
        f"'train.compute: bf16': {name} has no bfloat16 units ({', '.join(UNITS)} on a CPU; Ampere or newer of NVIDIA's GPUs) and would"
        " imitate them, slower than float32; train on another machine, or leave 'train.compute' out"
    )


def has_units(processor: Path = PROCESSOR) -> bool:
    """Whether this machine's processor computes in bfloat16; where it does not tell, it is taken not to."""
    try:
        words = processor.read_text().split()
    except OSError:
        return False
    return not set(UNITS).isdisjoint(words)
