"""The network that is attacked: frozen, checked, in the fastest form that computes the same function.

- Parameters need no gradient: attacks differentiate with respect to the image.
- A network of `methods.networks.resnet` has its batch norms folded and runs in channels_last (inside: AutoAttack refuses permuted strides).
- An engine may offer a still faster form of a network. Attacks then search on that form, but an example counts as broken only where the
  dense network misclassifies the adversarial image as well: rounding of an engine can cost an attack, never a wrong answer.
- Logits that are not finite are an error, never a wrong number.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from methods.core.errors import UserError
from methods.evaluation.observer import Observer
from methods.networks.fold import fold
from methods.networks.resnet import Net, memory_format

# A network in eval mode -> a module that maps the same images to the same logits (to rounding) and is differentiable in the image;
# None where the engine has nothing faster to offer.
Engine = Callable[[nn.Module], nn.Module | None]


class AttackedNet:
    """Images in [0, 1] -> logits: `dense` is the network whose answers count, `quick` the form that attacks search on."""

    def __init__(self, net: nn.Module, *, fast: bool = True, engine: Engine | None = None):
        self.dense: nn.Module = ChannelsLast(net) if fast and isinstance(net, Net) else net
        faster = engine(net) if engine is not None else None
        self.quick: nn.Module = self.dense if faster is None else faster

    @property
    def exact(self) -> bool:
        """Whether what the attacks see is what counts."""
        return self.quick is self.dense


class ChannelsLast(nn.Module):
    """A folded copy of a network of the suite, in the memory format that suits it.

    The copy is frozen for good. FAB would ask for weight gradients: waste, and in channels_last they crash narrow networks on several
    threads of the CPU build of torch 2.13 (input gradients do not).
    """

    def __init__(self, net: Net):
        super().__init__()
        self.format = memory_format(net)
        self.net = fold(net).to(memory_format=self.format).requires_grad_(False)  # type: ignore[call-overload] # torch's stub lacks it

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x.contiguous(memory_format=self.format))


class View(nn.Module):
    """The network as an attack sees it: passes are reported, memory is bounded, logits are checked.

    `chunk` bounds how many images are in memory at once; a gradient then recomputes each chunk's forward pass. Random draws happen
    outside, for the whole batch, so that chunks change results by rounding at most. `clean` are images whose logits are known.
    """

    def __init__(self, net: AttackedNet, observer: Observer, *, chunk: int | None = None, clean: tuple[Tensor, Tensor] | None = None):
        super().__init__()
        self.attacked, self.observer, self.chunk, self.clean = net, observer, chunk, clean

    def knowing(self, x: Tensor, logits: Tensor) -> View:
        """The same view for an attack on images whose logits have been computed: every attack asks for them once more."""
        return View(self.attacked, self.observer, chunk=self.chunk, clean=(x, logits))

    def forward(self, x: Tensor) -> Tensor:
        if self.clean is not None and not torch.is_grad_enabled() and torch.equal(x, self.clean[0]):
            return self.clean[1].clone()  # Square writes into what it gets
        return self._logits(self.attacked.quick, x)

    def dense(self, x: Tensor) -> Tensor:
        """The logits that count."""
        return self._logits(self.attacked.dense, x)

    def confirmed(self, x: Tensor, y: Tensor, suspects: Tensor) -> Tensor:
        """Of the rows that look misclassified, those that the dense network misclassifies."""
        if self.attacked.exact or not bool(suspects.any()):
            return suspects
        confirmed = suspects.clone()
        with torch.no_grad():
            confirmed[suspects] = self.dense(x[suspects]).max(1)[1] != y[suspects]
        return confirmed

    def _logits(self, net: nn.Module, x: Tensor) -> Tensor:
        graded = torch.is_grad_enabled() and x.requires_grad
        self.observer.passes(len(x) * (2 if graded else 1))
        if self.chunk is None or len(x) <= self.chunk:
            logits = net(x)
        elif graded:
            logits = torch.cat([checkpoint(net, chunk, use_reentrant=False) for chunk in x.split(self.chunk)])
        else:
            logits = torch.cat([net(chunk) for chunk in x.split(self.chunk)])
        _check_logits(logits, len(x))
        return logits


def _check_logits(logits: Tensor, count: int) -> None:
    if logits.ndim != 2 or len(logits) != count:
        raise UserError(f"the network returned logits of shape {tuple(logits.shape)} for {count} images; expected ({count}, classes)")
    values = logits.detach()
    if not torch.isfinite(values).all():
        bad = int((~torch.isfinite(values)).any(1).nonzero()[0, 0])
        raise UserError(f"the network's logits are not finite (row {bad} of a batch of {count}): {values[bad].tolist()}")


@contextmanager
def attacked(net: nn.Module, *, fast: bool = True, engine: Engine | None = None) -> Iterator[AttackedNet]:
    """`net` ready to be attacked: in eval mode and frozen for the while, then as it was."""
    modes = [(module, module.training) for module in net.modules()]
    flags = [(parameter, parameter.requires_grad) for parameter in net.parameters()]
    try:
        net.eval().requires_grad_(False)
        yield AttackedNet(net, fast=fast, engine=engine)
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
