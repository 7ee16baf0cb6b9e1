"""Which weights a network kept: its masks, their counts, and what random pruning would have left."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open

from methods.core.errors import UserError
from workflow.suite.results.size import read_shapes

SIMULATIONS = 500  # as many as the paper averages over
STAGE = 3  # in RN34 the stage with most layers; its square ones are the 256-channel layers that the paper shows


@dataclass(frozen=True, kw_only=True)
class Pair:
    """The masks (out, in, height, width) of two consecutive convolutions of one residual block."""

    block: int
    first: np.ndarray
    second: np.ndarray

    @property
    def place(self) -> str:
        out, inputs = self.first.shape[:2]
        return f"first square block of stage {STAGE} (blocks.{self.block}, {inputs} to {out} channels)"


def read_pair(path: Path) -> Pair:
    """The two masks that the figures show, from a model file: the first block of stage 3 whose 3x3 convolutions are both square.

    The paper does not name its block; it names the size, which this block has at full width.
    """
    block = square_block(read_shapes(path), str(path))
    try:
        with safe_open(path, framework="numpy") as file:
            first, second = (file.get_tensor(f"blocks.{block}.convs.{i}.weight") != 0 for i in (0, 1))
    except (OSError, SafetensorError) as error:
        raise UserError(f"{path}: cannot be read as a model file ({error}); train this Run again") from None
    return Pair(block=block, first=first, second=second)


def square_block(shapes: Mapping[str, tuple[int, ...]], where: str) -> int:
    """Number of the first block of stage 3 with two 3x3 convolutions of equal channels in and out; later stages start with a projection."""
    blocks = sorted({int(place[1]) for name in shapes if (place := re.match(r"blocks\.(\d+)\.", name))})
    stage = 1
    for block in blocks:
        stage += f"blocks.{block}.projection.weight" in shapes
        pair = [shapes.get(f"blocks.{block}.convs.{i}.weight", ()) for i in (0, 1)]
        square = all(len(shape) == 4 and shape[0] == shape[1] and shape[2:] == (3, 3) for shape in pair)
        if stage == STAGE and square and pair[0] == pair[1]:
            return block
    raise UserError(f"{where}: stage {STAGE} has no block with two square 3x3 convolutions; the mask figures need a network like RN34")


def per_input(mask: np.ndarray) -> np.ndarray:
    """Weights kept per input channel."""
    return mask.sum((0, 2, 3))


def per_output(mask: np.ndarray) -> np.ndarray:
    """Weights kept per output channel."""
    return mask.sum((1, 2, 3))


def per_kernel(mask: np.ndarray) -> np.ndarray:
    """How many kernels keep 0, 1, ... all of their weights."""
    area = mask.shape[2] * mask.shape[3]
    return np.bincount(mask.sum((2, 3)).ravel(), minlength=area + 1)


def falling(counts: np.ndarray) -> np.ndarray:
    """Counts by rank, the largest first."""
    return np.sort(counts)[::-1]


@dataclass(frozen=True, kw_only=True)
class Reference:
    """Mean and standard deviation by rank of the kept weights per channel, over random prunings of one layer."""

    inputs: tuple[np.ndarray, np.ndarray]
    outputs: tuple[np.ndarray, np.ndarray]


def random_reference(shape: tuple[int, ...], kept: int, *, simulations: int = SIMULATIONS, seed: int = 0) -> Reference:
    """Keep `kept` weights of a layer at random, again and again. Each draw is sorted before the mean is taken over draws:
    the other way round every rank would show the same mean."""
    out, inputs, height, width = shape
    size, generator = height * width, np.random.default_rng(seed)
    by_input, by_output = np.empty((simulations, inputs)), np.empty((simulations, out))
    for i in range(simulations):
        drawn = generator.choice(out * inputs * size, kept, replace=False, shuffle=False)
        by_input[i] = falling(np.bincount(drawn // size % inputs, minlength=inputs))
        by_output[i] = falling(np.bincount(drawn // (size * inputs), minlength=out))
    return Reference(inputs=(by_input.mean(0), by_input.std(0)), outputs=(by_output.mean(0), by_output.std(0)))


@dataclass(frozen=True, kw_only=True)
class Overlap:
    """How the channels that layer 1 leaves empty meet those that layer 2 does not read."""

    empty_outputs: int
    empty_inputs: int
    both: int
    jaccard: float
    by_chance: float


def overlap(pair: Pair) -> Overlap:
    """Jaccard index of the two sets of empty channels, beside what two independent sets of these sizes give on average (the ratio of
    the expected intersection and union)."""
    outputs, inputs = per_output(pair.first) == 0, per_input(pair.second) == 0
    a, b, both, n = int(outputs.sum()), int(inputs.sum()), int((outputs & inputs).sum()), len(outputs)
    expected = a * b / n
    union = a + b - expected
    return Overlap(
        empty_outputs=a,
        empty_inputs=b,
        both=both,
        jaccard=both / (a + b - both) if a + b else 0.0,
        by_chance=expected / union if union else 0.0,
    )
