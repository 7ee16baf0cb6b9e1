"""Folders that cannot be written to are refused with one message, before anything is made. With the real Snakemake where it matters."""

import os
import subprocess

import pytest

from methods.core import paths
from methods.core.errors import UserError
from workflow.suite.jobs import places

TARGET = paths.paper_audit()


def test_an_ordinary_folder_is_fine(tmp_path):
    places.check(tmp_path, "demo")
    for name in ("results/runs", "reports/demo", "logs"):
        (tmp_path / name).mkdir(parents=True)
    places.check(tmp_path, "demo")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "results/data").symlink_to(elsewhere)
    places.check(tmp_path, "demo")


@pytest.mark.parametrize("name", ["results", "results/runs", "reports/demo", "logs", ".snakemake"])
def test_a_link_to_nothing_is_named(tmp_path, name):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).symlink_to(tmp_path / "gone")
    with pytest.raises(UserError, match=f"{name}: is a link to {tmp_path}/gone, which is not there; make that folder, remove the link"):
        places.check(tmp_path, "demo")


def test_a_file_in_the_way_is_named(tmp_path):
    (tmp_path / "results").touch()
    with pytest.raises(UserError, match="results: is not a folder"):
        places.check(tmp_path, "demo")


def test_snakemake_ends_with_that_message(snakemake):
    (snakemake.folder / "reports").symlink_to(snakemake.folder / "gone")
    code, output = snakemake(TARGET)
    assert code == 1
    assert "reports: is a link to" in output
    assert "Traceback" not in output


@pytest.fixture
def frozen(tmp_path):
    """A file system that cannot be written to."""
    if os.getuid():
        pytest.skip("a read-only file system needs root (mount -t tmpfs -o ro)")
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", str(tmp_path)], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"a read-only file system cannot be mounted here: {done.stderr.strip()}")
    yield tmp_path
    subprocess.run(["umount", "--lazy", str(tmp_path)], check=True)


def test_a_read_only_disk_is_one_message(snakemake, frozen):
    code, output = snakemake(TARGET)
    assert code == 1
    assert f"{frozen}: cannot be written to (read-only file system)" in output
    assert "Traceback" not in output
