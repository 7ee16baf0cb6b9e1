"""Torch-free planning and rendering: what to run, where it lies, how it is shown."""
