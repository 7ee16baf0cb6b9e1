"""A photograph's file as an RGB picture.

simplejpeg reads most JPEG files, with Pillow's pixels: both are libjpeg-turbo, with its exact transform. Which one is faster depends on the
processor and on what their wheels carry: a third faster was measured on one machine, no difference on another (`methods.bench.loader`).
What it does not read as it should (other formats, CMYK, files with something wrong) Pillow reads, or refuses.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import simplejpeg
from PIL import Image

from methods.core.errors import UserError

PLAIN = ("YCbCr", "RGB", "Gray")  # colour spaces that become RGB alike in both


def picture(path: Path) -> Image.Image:
    """The picture in a file; a UserError names a file that is none."""
    try:
        content = path.read_bytes()
        pixels = _quickly(content)
        return _plainly(path) if pixels is None else Image.fromarray(pixels)
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise UserError(f"{path}: unreadable or truncated image ({error}); replace the file") from None


def _quickly(content: bytes) -> np.ndarray | None:
    try:
        *_, colours, _ = simplejpeg.decode_jpeg_header(content)
        return simplejpeg.decode_jpeg(content, "RGB") if colours in PLAIN else None
    except ValueError:  # not a JPEG file, or one with a fault
        return None


def _plainly(path: Path) -> Image.Image:
    with Image.open(path) as file:
        return file.convert("RGB")
