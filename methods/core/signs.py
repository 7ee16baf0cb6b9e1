"""The law of random signs: which +1 and -1 the frozen weights of a layer have, as a function of the seed and the layer's name alone.

A compact file names this law instead of storing signs, so it holds for ever. Of a layer with n weights:

    text    "robust-binary-subnets signs 1\\n<seed>\\n<layer>", the seed in decimal, in UTF-8
    bytes   the first ceil(n / 8) bytes of SHAKE-256 (FIPS 202) of the text
    signs   bit i % 8 (0 is the least significant) of byte i // 8 is that of weight i, in the order [out][in][row][column]: 1 is +1, 0 is -1

A different law would get another name; this one is never changed. (A library's generator would not do: its stream may differ between
versions, and between a CPU and a GPU.)
"""

from __future__ import annotations

import hashlib

import numpy as np

LAW = "robust-binary-subnets signs 1"


def signs(seed: int, layer: str, count: int) -> np.ndarray:
    """The signs of a layer of `count` weights: int8, +1 or -1."""
    stream = hashlib.shake_256(f"{LAW}\n{seed}\n{layer}".encode()).digest(-(-count // 8))
    bits = np.unpackbits(np.frombuffer(stream, np.uint8), count=count, bitorder="little")
    return bits.astype(np.int8) * 2 - 1
