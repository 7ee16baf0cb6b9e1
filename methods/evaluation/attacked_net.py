"""The network as the attacks see it: frozen, checked, in the fastest exact form, within the memory that there is.

- Parameters need no gradient: attacks differentiate with respect to the image.
- A network of `methods.networks.resnet` has its batch norms folded and runs in channels_last (inside: AutoAttack refuses permuted strides).
- Logits that are not finite are an error, never a wrong number.
- `chunk` bounds how many images are in memory at once; a gradient then recomputes each chunk's forward pass. Random draws happen outside,
  for the whole batch, so that chunks change results by rounding at most.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from methods.core.errors import UserError
from methods.networks.fold import fold
from methods.networks.resnet import Net, memory_format


class Victim(nn.Module):
    """Images in [0, 1] -> logits.

    `known` answers for a batch whose logits have been computed already; `tick` is told of each use, in passes per image.
    """

    def __init__(self, net: nn.Module, *, fast: bool = True):
        super().__init__()
        ours = fast and isinstance(net, Net)
        self.format = memory_format(net) if ours else None
        # The folded copy is frozen for good. FAB would ask for weight gradients: waste, and in channels_last they crash narrow networks on
        # several threads of the CPU build of torch 2.13 (input gradients do not).
        self.net = fold(net).to(memory_format=self.format).requires_grad_(False) if ours else net
        self.chunk: int | None = None
        self.known: tuple[Tensor, Tensor] | None = None
        self.tick: Callable[[int], None] = lambda passes: None

    def forward(self, x: Tensor) -> Tensor:
        if self.known is not None and not torch.is_grad_enabled() and torch.equal(x, self.known[0]):
            return self.known[1].clone()  # Square writes into what it gets
        self.tick(len(x) * (2 if torch.is_grad_enabled() and x.requires_grad else 1))
        if self.chunk is None or len(x) <= self.chunk:
            logits = self._logits(x)
        elif torch.is_grad_enabled() and x.requires_grad:
            logits = torch.cat([checkpoint(self._logits, part, use_reentrant=False) for part in x.split(self.chunk)])
        else:
            logits = torch.cat([self._logits(part) for part in x.split(self.chunk)])
        if logits.ndim != 2 or len(logits) != len(x):
            raise UserError(f"the network returned logits of shape {tuple(logits.shape)} for {len(x)} images; expected ({len(x)}, classes)")
        if not torch.isfinite(logits.detach()).all():
            bad = int((~torch.isfinite(logits.detach())).any(1).nonzero()[0, 0])
            raise UserError(f"the network's logits are not finite (row {bad} of a batch of {len(x)}): {logits.detach()[bad].tolist()}")
        return logits

    def _logits(self, x: Tensor) -> Tensor:
        return self.net(x if self.format is None else x.contiguous(memory_format=self.format))

    def halve(self, batch: int) -> int:
        """After a memory error: half as many images at once; at one image the error is final."""
        now = self.chunk or batch
        if now <= 1:
            raise UserError("out of memory with a single image at a time; free the device's memory or use another device")
        self.chunk = (now + 1) // 2
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        return self.chunk


@contextmanager
def victim(net: nn.Module, *, fast: bool = True) -> Iterator[Victim]:
    """`net` ready to be attacked: in eval mode and frozen for the while, then as it was."""
    modes = [(module, module.training) for module in net.modules()]
    flags = [(parameter, parameter.requires_grad) for parameter in net.parameters()]
    try:
        net.eval().requires_grad_(False)
        yield Victim(net, fast=fast)
    finally:
        for module, training in modes:
            module.training = training
        for parameter, flag in flags:
            parameter.requires_grad_(flag)


def model_hash(net: nn.Module) -> str:
    """SHA-256 of a network's class and tensors: the name of a network that does not come from a file."""
    digest = hashlib.sha256(type(net).__qualname__.encode())
    for name, tensor in sorted(net.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
