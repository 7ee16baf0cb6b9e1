"""torchvision beside any torch.

torchvision's PyPI wheel is a CUDA build. Beside a CPU-only torch its compiled extension cannot be loaded, and
`import torchvision` then stops because two operators that it refers to were never declared. Declaring their schemas is
enough for everything that needs no compiled operator: datasets, transforms, and the packages built on them.
"""

import importlib
import importlib.util
from functools import cache
from pathlib import Path
from types import ModuleType

import torch

from methods.core.errors import UserError

MISSING = ("nms", "qnms")
SCHEMA = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"


def torchvision() -> ModuleType:
    """The torchvision module. Call it before importing a package that imports torchvision (robustbench, timm)."""
    spec = importlib.util.find_spec("torchvision")
    if spec is None or spec.origin is None:
        raise UserError("torchvision is not installed; install requirements.txt into this environment")
    if not _extension_loads(Path(spec.origin).parent):
        _declare()
    return importlib.import_module("torchvision")


def _extension_loads(folder: Path) -> bool:
    """Try what torchvision's own import will try; where it works, the operators exist and must not be declared."""
    libraries = [*folder.glob("_C*.so"), *folder.glob("_C*.pyd")]
    try:
        for library in libraries:
            torch.ops.load_library(str(library))
    except OSError:
        return False
    return bool(libraries)


@cache  # the declarations live as long as the Library object does
def _declare() -> torch.library.Library:
    library = torch.library.Library("torchvision", "DEF")
    for name in MISSING:
        library.define(name + SCHEMA)
    return library
