"""Pruned networks on CPUs at the cost of their kept weights only. See layout.py for how numbers lie in memory, engine.py for the whole."""
