"""One convolution over a whole batch, forward or backward, by all threads."""

from __future__ import annotations

from methods.sparse.convolve import convolve
from methods.sparse.geometry import GROUP, Geometry
from methods.sparse.lanes import LANES
from methods.sparse.layout import Pool
from methods.sparse.lists import Lists
from methods.sparse.sink import Sink
from methods.sparse.source import Source
from methods.sparse.threads import share, threads


def sweep(pool: Pool, source: Source, lists: Lists, geometry: Geometry, sink: Sink, blocks: int) -> None:
    """Read the source, write to the sink; every thread has rows and results of its own."""
    g, tile = geometry, geometry.tile
    slack = tile * g.stride * LANES  # a row's last tile may reach beyond it
    rings = [pool.take(g.window * g.channels * g.pitch + slack) for _ in range(threads())]
    results = [pool.take(max(g.out_channels * tile, GROUP**2) * LANES) for _ in range(threads())]

    def work(thread: int, first: int, last: int) -> None:
        convolve((0,) * tile, first, last, source, lists, g, sink, rings[thread].address, results[thread].address)

    share(work, blocks * g.bands)
