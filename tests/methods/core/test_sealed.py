"""Files with a checksum of their own: what is written is read, and no changed byte passes."""

import json

import pytest

from methods.core import sealed
from methods.core.errors import UserError

VALUE = {"a": [1, 2.5, 1e-7, 0.1 + 0.2, -0.0, None, True], "b": {"1": "ü", "c": "\u2028"}, "tuple": (1, 2), "huge": 10**30}


def test_what_is_written_is_read(tmp_path):
    path = tmp_path / "x.json"
    sealed.write(path, VALUE)
    assert sealed.read(path)["a"] == VALUE["a"]
    assert sealed.read(path)["sha256"] == sealed.digest(VALUE)
    sealed.write(path, sealed.read(path))
    assert sealed.read(path)["sha256"] == sealed.digest(VALUE), "the checksum is no part of what it is of"


def test_no_change_passes(tmp_path):
    path = tmp_path / "x.json"
    sealed.write(path, {"n": 12, "list": ["ab", 0.5]})
    whole, same = path.read_bytes(), json.loads(path.read_text())
    for place in range(len(whole)):
        content = bytearray(whole)
        content[place] ^= 1
        path.write_bytes(content)
        try:
            assert sealed.read(path) == same, f"byte {place}: only layout may change unnoticed"
        except UserError as error:
            assert str(path) in str(error)
            assert "is damaged" in str(error)
            with pytest.raises(UserError, match="is damaged"):
                sealed.read(path)
    for cut in range(len(whole) - 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(UserError, match="is damaged"):
            sealed.read(path)
    for other in ("[]", "{}", '{"sha256": null}'):
        path.write_text(other)
        with pytest.raises(UserError, match="is damaged"):
            sealed.read(path)
