"""Pruned networks on CPUs, one or a few images at a time: `from methods.latency import Predictor; Predictor(net)(images)`.

Where the engine of methods/sparse has sixteen images in a vector, this one has sixteen positions of a map (plane.py), so that one image is
enough. It goes forward only. Batches above FEW images are given to the other engine.
"""

from __future__ import annotations

from methods.latency.predictor import FEW, Predictor

__all__ = ["FEW", "Predictor"]
