"""The network of a run: built as its spec says, and counted."""

from __future__ import annotations

from typing import Any

from methods.data.load import Data
from methods.networks.resnet import Net, build


def network(spec: dict[str, Any], data: Data) -> Net:
    """The network that a run asks for, with PyTorch's default weights."""
    return build(
        spec["arch"],
        classes=data.classes,
        stem="imagenet" if spec["dataset"] == "imagenet100" else "cifar",
        width=spec.get("width", 1),
        lbn=spec["lbn"],
        bn_affine=spec["bn_affine"],
        head_bias=spec["head_bias"],
        mean=data.mean if spec["normalize"] else None,
        std=data.std if spec["normalize"] else None,
    )


def weight_report(net: Net) -> dict[str, Any]:
    """Counts over the convolution weights: all, non-zero, and distinct non-zero values in the layer with most of them (999: at least)."""
    layers = [conv.weight.detach() for _, conv in net.convs()]
    distinct = max(min(int(w[w != 0].unique().numel()), 999) for w in layers)
    return {
        "weights": sum(w.numel() for w in layers),
        "nonzero": sum(int(w.count_nonzero()) for w in layers),
        "nonzero_per_layer": [int(w.count_nonzero()) for w in layers],
        "distinct_values": distinct,
    }
