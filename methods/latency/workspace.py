"""Memory for the planes of one image: places that maps take and give back, in one array that the kernels work on."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from methods.latency.plane import LANES, Plane


class Kind(NamedTuple):
    """Maps of one kind take each other's places: what is zero in one is zero in the other. `of` tells planes apart that were split."""

    plane: Plane
    channels: int
    of: Plane | None = None


@dataclass(frozen=True)
class Map:
    """Planes at a place of the workspace, counted in floats."""

    kind: Kind
    place: int

    @property
    def plane(self) -> Plane:
        return self.kind.plane

    def positions(self, workspace: np.ndarray) -> np.ndarray:
        """Its values as they lie there, [channels, height, width]."""
        plane, channels = self.kind.plane, self.kind.channels
        planes = workspace[self.place : self.place + channels * plane.floats].reshape(channels, plane.floats)
        return planes[:, : plane.height * plane.pitch].reshape(channels, plane.height, plane.pitch)[:, :, : plane.width]


class Layout:
    """Which map is where. Nothing is allocated before all maps are known."""

    def __init__(self):
        self.floats = 0
        self.maps: list[Map] = []
        self.free: dict[Kind, list[Map]] = defaultdict(list)

    def take(self, kind: Kind) -> Map:
        if self.free[kind]:
            return self.free[kind].pop()
        place = self.floats + kind.plane.margin
        self.floats = place + kind.channels * kind.plane.floats + kind.plane.margin
        self.maps.append(Map(kind, place))
        return self.maps[-1]

    def give_back(self, *maps: Map) -> None:
        for one in maps:
            self.free[one.kind].append(one)

    def workspace(self) -> np.ndarray:
        """All zero, and aligned: of a map only its positions are ever written."""
        memory = np.zeros(self.floats + LANES, np.float32)
        skip = -memory.ctypes.data % (4 * LANES) // 4
        return memory[skip : skip + self.floats]
