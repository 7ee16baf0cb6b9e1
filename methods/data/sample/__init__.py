"""The CIFAR-10 sample that ships with the project: the first 2000 training and 1000 test images, in official order.

Images are lossless WebP contact sheets (the smallest form that Pillow reads by itself: 5.1 MB against 6.5 MB as PNG);
labels and the SHA-256 of the decoded arrays are in sample.json. `python -m methods.data.sample.make` made these files.
"""

import json
from pathlib import Path

import numpy as np
from PIL import Image

from methods.core.errors import UserError
from methods.core.files import replacing, write_json
from methods.data.hashing import require, sha256

FOLDER = Path(__file__).parent
COUNTS = {"train": 2000, "test": 1000}
COLUMNS = 50


def read(folder: Path = FOLDER) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The verified arrays (uint8, images NHWC) and their SHA-256; keys train_images, train_labels, test_..."""
    index = folder / "sample.json"
    try:
        stored = json.loads(index.read_text())
        labels = {part: np.array([int(digit) for digit in stored["labels"][part]], np.uint8) for part in COUNTS}
        hashes = {key: str(stored["sha256"][key]) for part in COUNTS for key in (f"{part}_images", f"{part}_labels")}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{index}: not a readable sample index ({error}); restore the file from the repository") from None
    arrays = {}
    for part, values in labels.items():
        sheet = folder / f"{part}.webp"
        try:
            with Image.open(sheet) as image:
                arrays[f"{part}_images"] = from_sheet(np.asarray(image.convert("RGB")))
        except (OSError, ValueError) as error:
            raise UserError(f"{sheet}: unreadable ({error}); restore the file from the repository") from None
        require(arrays[f"{part}_images"], hashes[f"{part}_images"], sheet)
        arrays[f"{part}_labels"] = values
        require(values, hashes[f"{part}_labels"], index)
    return arrays, hashes


def write(folder: Path, images: dict[str, np.ndarray], labels: dict[str, np.ndarray]) -> None:
    """Write the files that `read` reads; both mappings have the keys "train" and "test"."""
    for part in COUNTS:
        with replacing(folder / f"{part}.webp") as temporary:
            Image.fromarray(to_sheet(images[part])).save(temporary, "WEBP", lossless=True, quality=100, method=6)
    stored = {
        "labels": {part: "".join(str(label) for label in labels[part]) for part in COUNTS},
        "sha256": {f"{part}_images": sha256(images[part]) for part in COUNTS} | {f"{part}_labels": sha256(labels[part]) for part in COUNTS},
    }
    write_json(folder / "sample.json", stored)


def to_sheet(images: np.ndarray) -> np.ndarray:
    """(N, 32, 32, 3) images as one picture, 50 in a row."""
    return images.reshape(-1, COLUMNS, 32, 32, 3).swapaxes(1, 2).reshape(-1, COLUMNS * 32, 3)


def from_sheet(sheet: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(sheet.reshape(-1, 32, COLUMNS, 32, 3).swapaxes(1, 2)).reshape(-1, 32, 32, 3)
