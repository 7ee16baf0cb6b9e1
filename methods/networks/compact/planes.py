"""Arrays of numbers as bytes, without loss: the first bytes of all numbers, then the second ones and so on, compressed.

Signs and exponents of weights and statistics repeat, their last bytes do not: apart from each other they compress, mixed they do not.
"""

from __future__ import annotations

import zlib

import numpy as np


def packed(values: np.ndarray) -> bytes:
    """The bytes of an array."""
    little = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
    return compressed(little.reshape(-1, 1).view(np.uint8).T.tobytes())


def compressed(plain: bytes) -> bytes:
    """Any bytes, smaller."""
    return zlib.compress(plain, 9)


def unpacked(content: bytes, count: int, dtype: str) -> np.ndarray:
    """`count` numbers of a type; ValueError where the bytes are not exactly that."""
    kind = np.dtype(dtype).newbyteorder("<")
    plain = inflated(content, count * kind.itemsize)
    if len(plain) != count * kind.itemsize:
        raise ValueError(f"{len(plain)} bytes where {count * kind.itemsize} belong")
    return np.frombuffer(plain, np.uint8).reshape(kind.itemsize, count).T.copy().view(kind).reshape(count).astype(np.dtype(dtype))


def inflated(content: bytes, most: int) -> bytes:
    """What was compressed, which must be at most so many bytes: memory is bounded whatever the bytes say."""
    stream = zlib.decompressobj()
    try:
        plain = stream.decompress(content, most + 1)
    except zlib.error as error:
        raise ValueError(f"damaged compression ({error})") from error
    if len(plain) > most:
        raise ValueError(f"more than the {most} bytes that belong there")
    if not stream.eof or stream.unused_data:
        raise ValueError("compressed bytes that do not end where they should")
    return plain
