"""Data sets: verified, split, augmented; images in [0, 1]."""
