"""Copies of CIFAR as the sources hand them out, with a few images per file."""

import io
import json
import pickle
import tarfile

import numpy as np
from PIL import Image

from methods.data import cifar_sources

PER_FILE = 30
LABELS = {"cifar10": 10, "cifar100": 100}


def pickles(name, arrays):
    """{file name: content} of the official python version."""
    layout = cifar_sources.LAYOUTS[name]
    contents = {}
    for part, files in layout.files.items():
        for i, file in enumerate(files):
            rows = slice(i * PER_FILE, (i + 1) * PER_FILE)
            data = np.ascontiguousarray(arrays[f"{part}_images"][rows].transpose(0, 3, 1, 2)).reshape(PER_FILE, -1)
            keys = ["data", layout.label.decode()]
            written = pickle.dumps(dict(zip(keys, (data, arrays[f"{part}_labels"][rows].tolist()), strict=True)), 2)
            for key in keys:  # the official files were written by Python 2, whose strings have another code
                written = written.replace(b"X" + len(key).to_bytes(4, "little") + key.encode(), b"U" + bytes([len(key)]) + key.encode())
            contents[file] = written
    return contents


def write_folder(name, arrays, root):
    folder = root / cifar_sources.LAYOUTS[name].folder
    folder.mkdir(parents=True)
    for file, content in pickles(name, arrays).items():
        (folder / file).write_bytes(content)
    return folder


def write_tar(path, contents):
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:xz" if path.suffix == ".xz" else "w:gz") as tar:
        for member, content in contents.items():
            info = tarfile.TarInfo(member)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path


def write_archive(name, arrays, root, suffix=".gz"):
    layout = cifar_sources.LAYOUTS[name]
    contents = {f"{layout.folder}/{file}": content for file, content in pickles(name, arrays).items()}
    return write_tar(root / (layout.archive + suffix), contents)


def package(arrays):
    """{member: content} of the npm package."""
    contents = {}
    for part, files in cifar_sources.LAYOUTS["cifar10"].files.items():
        for i, file in enumerate(files):
            picture = io.BytesIO()
            rows = arrays[f"{part}_images"][i * PER_FILE : (i + 1) * PER_FILE]
            Image.fromarray(rows.reshape(PER_FILE, 1024, 3)).save(picture, "PNG")
            contents[f"package/{file}.png"] = picture.getvalue()
        contents[f"package/{part}_lables.json"] = json.dumps(arrays[f"{part}_labels"].tolist()).encode()
    return contents


def same(left, right):
    return left.keys() == right.keys() and all(np.array_equal(left[key], right[key]) for key in right)


def files(root):
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())
