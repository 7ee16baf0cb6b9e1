"""Files with a checksum of their own: what one side writes the other reads, and no changed byte passes."""

import json

import pytest
from snakemake.persistence.file import FilePersistence

from methods import sealed as written
from methods.errors import UserError
from workflow.suite import killed
from workflow.suite import sealed as read
from workflow.suite.errors import SuiteError

VALUE = {"a": [1, 2.5, 1e-7, 0.1 + 0.2, -0.0, None, True], "b": {"1": "ü", "c": "\u2028"}, "tuple": (1, 2), "huge": 10**30}


def test_both_sides_agree(tmp_path):
    path = tmp_path / "x.json"
    written.write(path, VALUE)
    assert written.read(path) == read.read(path)
    assert read.read(path)["a"] == VALUE["a"] and written.digest(VALUE) == read.digest(VALUE) == read.read(path)["sha256"]
    written.write(path, read.read(path))
    assert read.read(path)["sha256"] == written.digest(VALUE), "the checksum is no part of what it is of"


def test_no_change_passes(tmp_path):
    path = tmp_path / "x.json"
    written.write(path, {"n": 12, "list": ["ab", 0.5]})
    whole, same = path.read_bytes(), json.loads(path.read_text())
    for place in range(len(whole)):
        content = bytearray(whole)
        content[place] ^= 1
        path.write_bytes(content)
        try:
            assert read.read(path) == same, f"byte {place}: only layout may change unnoticed"
        except SuiteError as error:
            assert str(path) in str(error) and "is damaged" in str(error)
            with pytest.raises(UserError, match="is damaged"):
                written.read(path)
    for cut in range(len(whole) - 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(SuiteError, match="is damaged"):
            read.read(path)
    for other in ("[]", "{}", '{"sha256": null}'):
        path.write_text(other)
        with pytest.raises(SuiteError, match="is damaged"):
            read.read(path)


@pytest.mark.parametrize("name", ["results/runs/x.0123456789ab/train.json", "results/" + "long/" * 90 + "x.json"])
def test_marks_are_named_as_snakemake_names_them(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    persistence = FilePersistence()
    persistence._mark_incomplete(name, None)
    mark = killed.marker(tmp_path, name)
    assert mark.is_file()
    content = mark.read_text()
    mark.unlink()
    killed.unfinished(tmp_path, name)
    assert mark.read_text() == content
