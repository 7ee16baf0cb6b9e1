"""A network computed by its kept weights only, in place of `net(x)`: same values, same gradients, same running statistics.

Which gradients are computed is decided when they are asked for: `torch.autograd.grad(loss, x)`, as in an attack, computes that of the
input; `loss.backward()` on an input that needs none, as in a training step, those of the parameters.
"""

from __future__ import annotations

from weakref import ref

import torch
from torch import Tensor, nn

from methods.networks.resnet import Net
from methods.sparse.backward import Backward
from methods.sparse.forward import Forward
from methods.sparse.layer import Layers
from methods.sparse.layout import Pool
from methods.sparse.tape import Tape


def _asked(node: object) -> bool:
    """Whether the backward pass under way goes on to this node. torch answers with an error if the node is where it ends: it does."""
    try:
        return node is not None and torch._C._will_engine_execute_node(node)
    except RuntimeError:
        return True


class _Pass(torch.autograd.Function):
    """A recorded pass as a node of torch's graph."""

    @staticmethod
    def forward(ctx, engine: Engine, x: Tensor, *parameters: nn.Parameter) -> Tensor:
        logits, ctx.tape = engine.forward(x, record=True)
        ctx.engine, ctx.parameters = engine, parameters
        return logits

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient: Tensor):
        asked = [_asked(node) for node, _ in ctx.next_functions]  # of the tensors that the node was made from
        wanted = {id(parameter) for parameter, is_asked in zip(ctx.parameters, asked[1:], strict=True) if is_asked}
        backward = Backward(ctx.tape, ctx.engine.pool, wanted, wants_input=asked[0], places=ctx.engine.places)
        return None, backward(gradient), *(backward.gradients.get(id(parameter)) for parameter in ctx.parameters)


class Engine:
    """Computes a network, whose convolutions' weights, batch norms and mode are looked at at every call."""

    def __init__(self, net: Net):
        self._net = ref(net)  # a network owns its engine (choice.py), not the other way round
        self.layers, self.pool, self.parameters = Layers(net), Pool(), tuple(net.parameters())

    @property
    def places(self) -> dict[nn.Module, Tensor]:
        net = self._net()
        return {} if net is None else net.places

    def forward(self, x: Tensor, *, record: bool) -> tuple[Tensor, Tape]:
        net = self._net()
        keep = record and (net.training or self._trained())
        return Forward(net, self.layers, self.pool, record=record, keep=keep)(x)

    def __call__(self, x: Tensor) -> Tensor:
        if torch.is_grad_enabled() and (x.requires_grad or self._trained()):
            return _Pass.apply(self, x, *self.parameters)
        return self.forward(x, record=False)[0]

    def _trained(self) -> bool:
        return any(parameter.requires_grad for parameter in self.parameters)
