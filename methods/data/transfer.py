"""From the host to the device that trains."""

import torch
from torch import Tensor


def sent(values: Tensor, device: torch.device) -> Tensor:
    """A tensor of the host on a device. A GPU takes it from pinned memory when it comes to it; other memory makes the host wait for it."""
    return values.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else values.to(device)
