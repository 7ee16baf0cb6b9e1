"""How many bytes a network needs on disk: those of its compact file, where it has one, else what its weights allow.

A pruned network is packed when it is trained (methods.networks.compact), and its manifest says how many bytes that took: nothing is
computed here. A factorised network is packed as the product that is deployed. Dense networks have no compact file; for them, per
convolution with n weights of which m are not zero, taking v distinct values:

    which weights   0 bits if m = n, else the smaller of n (a bitmap) and m * ceil(log2 n) (a list of positions)
    which values    the smaller of 32 m (plain floats) and m * ceil(log2 v) + 32 v (a codebook; signs of one magnitude are its v = 2)

plus 64 bits per channel of a batch norm (in evaluation it is one factor and one shift, whether or not it is trained) and 32 per bias.
No entropy coding; kilobytes are 1000 bytes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, log2
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from methods.core import paths, sealed
from methods.core.architectures import blocks_of, features, shape_of, stem_conv
from methods.core.datasets import DATASETS
from methods.core.errors import UserError

FLOAT = 32
Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, kw_only=True)
class Layer:
    """One stored tensor, or several with a codebook each: entries, non-zero ones, distinct non-zero values of a tensor (an upper bound
    will do), and the values of all codebooks together where there are several."""

    entries: int
    kept: int
    values: int
    codebooks: int | None = None

    @property
    def bits(self) -> int:
        where = 0 if self.kept == self.entries else min(self.entries, self.kept * _bits_for(self.entries))
        codebooks = self.values if self.codebooks is None else self.codebooks
        return where + min(FLOAT * self.kept, self.kept * _bits_for(self.values) + FLOAT * codebooks)


def kilobytes(layers: list[Layer], shapes: Shapes) -> float:
    """Size of a network of these layers, with the batch norms and biases among these tensors."""
    channels = sum(shape[0] for name, shape in shapes.items() if name.endswith("running_var"))
    biases = sum(shape[0] for name, shape in shapes.items() if name.endswith("bias") and "norm" not in name)
    return (sum(layer.bits for layer in layers) + 2 * FLOAT * channels + FLOAT * biases) / 8 / 1000


@dataclass(frozen=True, kw_only=True)
class Size:
    """Kilobytes of a network, and whether they were measured (or follow from its counts)."""

    kilobytes: float
    measured: bool


def of_run(run: str, folder: Path) -> Size:
    """The size of the network of a finished Run: its compact file's, or what follows from the manifest's counts and the layers' shapes.

    No model file is read: results that travelled have none of a dense network.
    """
    path = folder / paths.train_manifest(run)
    try:
        manifest = sealed.read(path)
        spec, report, measured = manifest["spec"], manifest["report"], manifest.get("bytes")
    except (OSError, KeyError) as error:
        raise UserError(f"{path}: is not the manifest of a finished training ({error!r}); train this Run again") from None
    if measured is not None:
        return Size(kilobytes=measured / 1000, measured=True)
    shapes = shapes_of(spec)
    return Size(kilobytes=kilobytes(layers_of(report, shapes, str(path)), shapes), measured=False)


def layers_of(report: Mapping[str, Any], shapes: Shapes, where: str) -> list[Layer]:
    """The stored tensors that a training reported."""
    if "stored_entries" in report:  # factors: only their sum is reported, so they are counted as one tensor
        values = report.get("distinct_values_z")
        if values:
            return [Layer(entries=report["stored_entries"], kept=report["nonzero_z"], values=max(values), codebooks=sum(values))]
        return [Layer(entries=report["stored_entries"], kept=report["nonzero_w"], values=report["nonzero_w"])]
    entries = [_count(shapes[name]) for name in convolutions(shapes)]
    kept = report.get("nonzero_per_layer", ())
    if len(kept) != len(entries):
        raise UserError(f"{where}: report.nonzero_per_layer: has {len(kept)} entries for {len(entries)} convolutions; train this Run again")
    distinct = report["distinct_values"]  # of the layer with most of them; 999 stands for more, and then no codebook pays
    return [Layer(entries=n, kept=m, values=min(m, distinct) if distinct < 999 else m) for n, m in zip(entries, kept, strict=True)]


def convolutions(shapes: Shapes) -> list[str]:
    """Names of the convolution weights in the order in which trainings report them: stem; blocks, the projection last; classifier."""
    blocks = [name for name, shape in shapes.items() if name.startswith("blocks.") and len(shape) == 4]
    return ["stem.weight", *sorted(blocks, key=lambda name: (int(name.split(".")[1]), "projection" in name, name)), "head.weight"]


def shapes_of(spec: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Tensor -> shape of the weights, variances and biases of a Run's network, by the names of its model file."""
    shape, classes = shape_of(spec["arch"], spec.get("width", 1)), DATASETS[spec["dataset"]].classes
    convs = {"stem": ("stem_norm", stem_conv(shape, "imagenet" if spec["dataset"] == "imagenet100" else "cifar"))}
    for number, block in enumerate(blocks_of(shape)):
        convs |= {f"blocks.{number}.convs.{i}": (f"blocks.{number}.norms.{i}", conv) for i, conv in enumerate(block.body)}
        if block.projection is not None:
            convs[f"blocks.{number}.projection"] = (f"blocks.{number}.projection_norm", block.projection)
    shapes: dict[str, tuple[int, ...]] = {}
    for name, (norm, conv) in convs.items():
        shapes[f"{name}.weight"] = (conv.channels_out, conv.channels_in, conv.kernel, conv.kernel)
        shapes[f"{norm}.running_var"] = (conv.channels_out,)
    shapes["head.weight"] = (classes, features(shape), 1, 1)
    if spec.get("head_bias"):
        shapes["head.bias"] = (classes,)
    if spec["lbn"]:
        shapes["last_norm.running_var"] = (classes,)
    return shapes


def read_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Tensor -> shape, from the header of a safetensors file alone."""
    try:
        with safe_open(path, framework="numpy") as file:
            return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise UserError(f"{path}: cannot be read as a model file ({error}); train this Run again") from None


def _bits_for(choices: int) -> int:
    return ceil(log2(choices)) if choices > 1 else 0


def _count(shape: tuple[int, ...]) -> int:
    count = 1
    for extent in shape:
        count *= extent
    return count
