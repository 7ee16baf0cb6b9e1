"""Weights in a file of torch.save, read without running a line of code from it.

Such a file is a pickle, which can hold any Python object; only tensors, containers and numbers are let in. Why a file is refused is said
here: torch's own messages advise to load it with code execution allowed.
"""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import torch
from torch import Tensor

from methods.core.errors import UserError

SUFFIXES = (".pt", ".pth", ".bin", ".ckpt")
ADVICE = "save the tensors alone, torch.save(net.state_dict(), FILE)"


def read_state(path: Path, *, absent: str = "") -> dict[str, Tensor]:
    """The state dict of a file: what it holds, or what stands in it under 'state_dict'. `absent` is what to do if there is no file."""
    try:
        saved = torch.load(path, weights_only=True, map_location="cpu")
    except FileNotFoundError:
        raise UserError(f"{path}: no such file" + (f"; {absent}" if absent else "")) from None
    except (OSError, RuntimeError, EOFError, ValueError, KeyError, pickle.UnpicklingError) as error:
        raise UserError(f"{path}: {reason(error)}") from None
    state = saved.get("state_dict", saved) if isinstance(saved, dict) else saved
    if not isinstance(state, dict) or not state or not all(isinstance(tensor, Tensor) for tensor in state.values()):
        raise UserError(f"{path}: holds no state dict of tensors, neither itself nor under 'state_dict'; {ADVICE}")
    return state


def reason(error: Exception) -> str:
    """Why torch.load did not take a file, in our words."""
    text = str(error)
    if "TorchScript" in text:
        return f"a TorchScript program, not a file of weights; {ADVICE}"
    if isinstance(error, OSError) and error.strerror:
        return f"cannot be read ({error.strerror})"
    if isinstance(error, pickle.UnpicklingError) and (names := re.findall(r"(?:GLOBAL|class) `?([\w.]+)`?", text)):
        return f"holds a Python object ({names[0]}), and code from a file is never run here; {ADVICE}"
    return "not a complete file of torch.save; it is damaged, cut off, or of another kind"
