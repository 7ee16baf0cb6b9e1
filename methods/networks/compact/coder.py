"""Bits to bytes and back, each bit at the cost that its probability says (range coding by the `constriction` library).

One function describes a model for both directions: it asks its coder for `bits(probability, bits)`. An `Encoder` writes the bits that it
is given, a `Decoder` is given none and returns those that were written, a `Meter` only adds up what they would cost.

Both directions must see the same probabilities, on any machine. They are rounded to multiples of 2^-16, which floating point holds
exactly, and whoever computes them uses nothing but +, -, * and / element by element, which IEEE 754 defines to the last bit.
"""

from __future__ import annotations

from typing import Protocol

import constriction
import numpy as np

Bernoulli, queue = constriction.stream.model.Bernoulli, constriction.stream.queue
UNIT = 65536
WORD = np.dtype("<u4")


class Coder(Protocol):
    """What a model needs: the bits that go with these probabilities of a 1 (both of one dimension)."""

    def bits(self, probability: np.ndarray, bits: np.ndarray | None) -> np.ndarray: ...


def rounded(probability: np.ndarray) -> np.ndarray:
    """The nearest multiple of 2^-16 strictly between 0 and 1: any bit can be written, an unlikely one costs 16 bits."""
    return np.clip(np.rint(probability * UNIT), 1, UNIT - 1) / UNIT


class Encoder:
    """Writes bits."""

    def __init__(self) -> None:
        self._coder, self._model = queue.RangeEncoder(), Bernoulli(perfect=False)

    def bits(self, probability: np.ndarray, bits: np.ndarray | None) -> np.ndarray:
        assert bits is not None
        if bits.size:
            self._coder.encode(bits.astype(np.int32), self._model, rounded(probability))
        return bits

    def finish(self) -> bytes:
        return self._coder.get_compressed().astype(WORD).tobytes()


class Decoder:
    """Reads bits; of bytes that no encoder wrote it reads some bits all the same, or raises ValueError."""

    def __init__(self, content: bytes) -> None:
        if len(content) % WORD.itemsize:
            raise ValueError("the coded bits are not whole words")
        self._coder, self._model = queue.RangeDecoder(np.frombuffer(content, WORD).astype(np.uint32)), Bernoulli(perfect=False)

    def bits(self, probability: np.ndarray, bits: np.ndarray | None = None) -> np.ndarray:
        if not probability.size:
            return np.zeros(0, bool)
        try:
            return self._coder.decode(self._model, rounded(probability)).astype(bool)
        except AssertionError as error:  # the library's word for bytes that its encoder cannot have written
            raise ValueError("the coded bits are not those of an encoder") from error

    def finish(self) -> None:
        """Everything must have been read."""
        if not self._coder.maybe_exhausted():
            raise ValueError("the coded bits go on after their end")


class Meter:
    """Counts what bits would cost."""

    def __init__(self) -> None:
        self.total = 0.0

    def bits(self, probability: np.ndarray, bits: np.ndarray | None) -> np.ndarray:
        assert bits is not None
        chance = rounded(probability)
        self.total -= float(np.log2(np.where(bits, chance, 1 - chance)).sum())
        return bits
