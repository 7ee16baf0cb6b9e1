"""How the maps of one image lie in memory: channel after channel, each with its rows one after the other and zeros in between.

A row is followed by `border` zeros, and the last row by rows of zeros. What lies before a row is then the zeros of the row before it, and
what lies above a plane the zeros of the plane before it: wherever a kernel stands, a weight of it meets the same place relative to every
position, and a vector takes sixteen positions whether or not a row ends among them. What is computed for the zeros themselves is
masked when it is written.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

LANES = 16  # as methods.sparse.lanes, which needs numba, has it


def whole(count: int) -> int:
    """The next whole number of vectors, in floats."""
    return -(-count // LANES) * LANES


@dataclass(frozen=True)
class Plane:
    """One channel of a map; `border` is how far a kernel reaches beyond its edges."""

    height: int
    width: int
    border: int = 1

    @property
    def pitch(self) -> int:
        """From one row to the next, in floats."""
        return self.width + self.border

    @property
    def floats(self) -> int:
        """From one channel to the next."""
        return whole((self.height + self.border) * self.pitch)

    @property
    def vectors(self) -> int:
        """Those that hold all positions."""
        return whole((self.height - 1) * self.pitch + self.width) // LANES

    @property
    def margin(self) -> int:
        """Floats before the first channel and after the last one that a kernel may read."""
        return whole(self.border * self.pitch + self.border) + LANES

    def mask(self) -> np.ndarray:
        """Sixteen bits per vector: which of its lanes are positions of the map."""
        places = np.arange(self.vectors * LANES)
        inside = (places % self.pitch < self.width) & (places // self.pitch < self.height)
        return np.packbits(inside.reshape(-1, LANES), axis=1, bitorder="little").view(np.uint16).ravel()

    def halved(self, border: int) -> Plane:
        """The plane of every other row and column."""
        return Plane(-(-self.height // 2), -(-self.width // 2), border)
