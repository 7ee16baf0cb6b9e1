"""SHA-256 of arrays, and the refusal of arrays that are not what they should be."""

import hashlib
from pathlib import Path

import numpy as np

from methods.core.errors import UserError


def sha256(array: np.ndarray) -> str:
    """SHA-256 of the array's bytes in C order."""
    return hashlib.sha256(np.ascontiguousarray(array).data).hexdigest()


def require(array: np.ndarray, expected: str, where: Path | str) -> None:
    """Raise unless the decoded contents of the file `where` have the expected SHA-256."""
    actual = sha256(array)
    if actual != expected:
        raise UserError(f"{where}: contents differ from the original (SHA-256 {actual}, expected {expected}); fetch it again")
