"""Batch norm in eval mode folded into the convolution before it: the same function to rounding, one memory pass less per layer.

Works on any network that `torch.fx` can trace and whose forward pass is a fixed function of its input. A forward pass that draws random
numbers or decides by Python state would be frozen at the traced draw: do not fold such a network.
"""

from __future__ import annotations

import copy
from typing import TypeVar

from torch import fx, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

M = TypeVar("M", bound=nn.Module)


def fold(net: nn.Module) -> fx.GraphModule:
    """A copy of `net` in eval mode without its foldable batch norms; the argument is left as it is."""
    traced = fx.symbolic_trace(copy.deepcopy(net).eval())
    calls = [node.target for node in traced.graph.nodes if node.op == "call_module"]
    for node in list(traced.graph.nodes):
        norm = _module(traced, node, nn.BatchNorm2d)
        if norm is None or norm.running_var is None:
            continue
        before = node.args[0]
        conv = _module(traced, before, nn.Conv2d)
        # Folding is only right where nobody else sees the convolution's output, nor calls either module a second time.
        if conv is None or len(before.users) > 1 or calls.count(before.target) > 1 or calls.count(node.target) > 1:
            continue
        traced.set_submodule(before.target, fuse_conv_bn_eval(conv, norm))
        node.replace_all_uses_with(before)
        traced.graph.erase_node(node)
    traced.delete_all_unused_submodules()
    traced.graph.lint()
    traced.recompile()
    return traced


def _module(traced: fx.GraphModule, node: object, kind: type[M]) -> M | None:
    """The module that a node calls, when it is of the given kind."""
    if not isinstance(node, fx.Node) or node.op != "call_module":
        return None
    module = traced.get_submodule(str(node.target))
    return module if isinstance(module, kind) else None
