"""One image, forward, by kept weights (methods/latency), by torch, and, where `pip install onnxruntime onnx` was done, by ONNX Runtime."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor, nn

from methods.bench.turns import agree, compared
from methods.core.errors import UserError
from methods.latency import Predictor
from methods.networks.fold import fold
from methods.networks.resnet import Net

ROUNDING = 1e-3  # of logits


def onnx_runtime(net: nn.Module, x: Tensor) -> Callable[[], Tensor] | None:
    """A call of ONNX Runtime for these images, on as many threads as torch has; none where it or `onnx` is not installed."""
    if find_spec("onnxruntime") is None or find_spec("onnx") is None:
        return None
    import onnxruntime

    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter that needs nothing else is called old
        torch.onnx.export(net, (x,), file, dynamo=False, opset_version=17)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(file.getvalue(), options, providers=["CPUExecutionProvider"])
    given = {session.get_inputs()[0].name: x.numpy()}
    return lambda: torch.from_numpy(session.run(None, given)[0])


def one_image(net: Net, repeats: int, side: int = 32) -> dict[str, Any]:
    """Seconds of one image by each, on one thread; logits are compared first."""
    x = torch.rand(1, 3, side, side, generator=torch.Generator().manual_seed(2))
    last = x.contiguous(memory_format=torch.channels_last)
    plain, predictor = fold(net), Predictor(net)
    if predictor.reason is not None:
        raise UserError(f"one image cannot be measured: {predictor.reason}")
    folded, before = fold(net).to(memory_format=torch.channels_last), torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        runtime = onnx_runtime(plain, x)
        calls: dict[str, Callable[[], Tensor]] = {"torch": lambda: folded(last)}
        calls |= {} if runtime is None else {"ONNX Runtime": runtime}
        calls["sparse"] = lambda: predictor(x)
        with torch.inference_mode():
            for name, call in calls.items():
                agree(f"logits (sparse and {name})", predictor(x), call(), ROUNDING)
            result = compared(calls, repeats)
    finally:
        torch.set_num_threads(before)
    least = {name: min(seconds) for name, seconds in result["seconds"].items()}
    return result | {"least": least, "missing": [] if runtime is not None else ["ONNX Runtime: pip install onnxruntime onnx"]}
