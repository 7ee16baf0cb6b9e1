"""Compact files that somebody damaged or forged: a clear error within bounded memory and time, and nothing is ever run."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import random
import tracemalloc
import zlib
from pathlib import Path

import pytest
import torch

from methods.core.errors import UserError
from methods.networks import compact
from methods.networks.compact import reader
from methods.networks.compact.container import MAGIC, MOST_HEADER, START, VERSION

GOOD = (Path(__file__).parent / "pinned.rbs").read_bytes()
LENGTH = int.from_bytes(GOOD[START : START + 4], "little")
HEADER = json.loads(zlib.decompress(GOOD[START + 4 : START + 4 + LENGTH]))
SECTIONS = GOOD[START + 4 + LENGTH :]


def sealed(rest: bytes) -> bytes:
    """A file whose checksum is right, whatever it holds."""
    return MAGIC + bytes([VERSION]) + hashlib.sha256(rest).digest() + rest


def forged(body: bytes = SECTIONS, plain: bytes | None = None, **changes) -> bytes:
    header = zlib.compress(json.dumps({**HEADER, **changes}).encode() if plain is None else plain)
    return sealed(len(header).to_bytes(4, "little") + header + body)


def network(**changes) -> dict:
    return {**HEADER["network"], **changes}


def layers(place: int, **changes) -> list:
    """The layers with some fields of one changed."""
    fields = dict(zip(("kept", "values", "levels", "rows", "columns"), HEADER["layers"][place], strict=True)) | changes
    return [*HEADER["layers"][:place], list(fields.values()), *HEADER["layers"][place + 1 :]]


def outcome(content: bytes) -> str | None:
    """The message of the error, or nothing where the bytes are a network after all; any other exception is a failure of the test."""
    try:
        reader.decode(content, "net.rbs")
    except UserError as error:
        assert str(error).startswith("net.rbs: ")
        return str(error)
    return None


def test_the_forger_works():
    assert outcome(GOOD) is None
    assert outcome(forged()) is None
    assert sealed(GOOD[START:]) == GOOD


def test_truncated_anywhere():
    for end in [*range(START + 8), *range(START + 8, len(GOOD), 37)]:
        assert outcome(GOOD[:end]) is not None, end
    assert "is damaged (its contents do not have the SHA-256" in outcome(GOOD[:-1])
    assert outcome(GOOD + b"x") is not None


def test_any_flipped_bit_is_noticed():
    draws = random.Random(0)
    for place in [*range(START + 4), *draws.choices(range(len(GOOD)), k=300)]:
        content = bytearray(GOOD)
        content[place] ^= 1 << draws.randrange(8)
        assert outcome(bytes(content)) is not None, place


@pytest.mark.timeout(300)  # a file that takes long would be one that takes for ever
def test_bits_flipped_by_somebody_who_repairs_the_checksum():
    """Nearly always an error all the same: masks do not keep as many weights as the header says, compression has checks of its own."""
    draws, errors = random.Random(1), 0
    rest = GOOD[START:]
    for case in range(250):
        content = bytearray(rest)
        first = 0 if case % 2 else 4 + LENGTH  # the sections alone: flips in the header mostly end at its compression
        for _ in range(draws.choice((1, 1, 3, 20))):
            content[draws.randrange(first, len(content))] ^= 1 << draws.randrange(8)
        errors += outcome(sealed(bytes(content))) is not None
    assert errors > 200


def test_flipped_bits_of_the_plain_header():
    draws, plain = random.Random(2), json.dumps(HEADER).encode()
    for _ in range(250):
        content = bytearray(plain)
        for _ in range(draws.choice((1, 2, 5))):
            content[draws.randrange(len(content))] = draws.choice(b'0123456789"[]{},:-.eE tfn')
        outcome(forged(plain=bytes(content)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"network": network(width=60.0)}, "a network of [0-9]+ weights, where at most"),
        ({"network": network(width=1e300)}, r"Expected `(float|int)` <= 64"),
        ({"network": network(width=-1)}, r"Expected `int` >= 1"),
        ({"network": network(classes=10**9)}, r"Expected `int` <= 100000"),
        ({"network": network(arch="vgg")}, "Invalid enum value 'vgg'"),
        ({"network": network(stem="x")}, "Invalid enum value"),
        ({"network": network(builder="os:system")}, "unknown field `builder`"),
        ({"network": network(lbn=False)}, "bytes"),
        ({"layers": []}, "0 layers for a network of 21"),
        ({"layers": layers(1, kept=10**12)}, "Expected `int` <="),
        ({"layers": layers(1, kept=10**6)}, "weights kept in layer blocks.0.convs.0 of 144"),
        ({"layers": layers(1, kept=-1)}, "Expected `int` >= 0"),
        ({"layers": layers(1, rows=16)}, "Expected `int` <="),
        ({"layers": layers(1, values="pickle")}, "Invalid enum value"),
        ({"layers": layers(1, values="codebook")}, "0 values of kind codebook"),
        ({"layers": layers(1, levels=200)}, "200 values of kind law"),
        ({"batches": [1]}, "1 counts of batches for 21 batch norms"),
        ({"batches": [-1] * 21}, "Expected `int` >= 0"),
        ({"seed": None}, "signs by a law without a seed"),
        ({"law": "another"}, "draws signs by the law 'another'"),
        ({"sections": [0, 0, len(SECTIONS)]}, "bytes|compression"),
        ({"sections": [1 << 32] * 3}, "the sections are not as long as the header says"),
        ({"sections": [-1, 1, len(SECTIONS)]}, "Expected `int` >= 0"),
        ({"half": True}, "bytes"),
        ({"surplus": 1}, "unknown field `surplus`"),
        ({"\x1b[2J": 1}, r"unknown field `\?\[2J`"),
        ({"law": "\x1b[2J"}, r"the law '\\x1b\[2J'"),
    ],
)
def test_forged_headers(changes, message):
    with pytest.raises(UserError, match=message):
        reader.decode(forged(**changes), "net.rbs")


def test_huge_networks_are_refused_before_they_are_built(monkeypatch):
    monkeypatch.setattr(reader, "build", lambda **_: pytest.fail("was built"))
    for width in (8.0, 64.0):
        with pytest.raises(UserError, match="where at most"):
            reader.decode(forged(network=network(width=width)), "net.rbs")


def peak(content: bytes) -> tuple[str | None, int]:
    """The outcome, and the most memory that Python objects took on the way, beyond that of the content."""
    tracemalloc.start()
    try:
        return outcome(content), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_bombs_stay_small():
    """A quarter of a megabyte that would become a quarter of a gigabyte: as the header, and as each compressed section."""
    bomb = zlib.compress(bytes(1 << 28), 9)
    message, memory = peak(sealed(len(bomb).to_bytes(4, "little") + bomb))
    assert f"more than the {MOST_HEADER} bytes" in message
    assert memory < 1 << 22
    coded, real, numbers = HEADER["sections"]
    for section in (1, 2):
        sizes = [coded, real, numbers]
        sizes[section] = len(bomb)
        bodies = [SECTIONS[:coded], SECTIONS[coded : coded + real], SECTIONS[coded + real :]]
        bodies[section] = bomb
        message, memory = peak(forged(b"".join(bodies), sections=sizes))
        assert "more than the" in message
        assert memory < 1 << 22


def test_json_of_great_depth():
    deep = b'{"a":' * 30_000 + b"1" + b"}" * 30_000
    plain = json.dumps({**HEADER, "spec": {}}).encode().replace(b'"spec": {}', b'"spec": ' + deep)
    assert outcome(forged(plain=plain)) is not None


def test_numbers_that_no_network_has():
    numbers = torch.full((2000,), torch.nan).numpy().tobytes()
    count = len(zlib.decompress(SECTIONS[-HEADER["sections"][2] :])) // 4
    planes = zlib.compress(bytes(b for place in range(4) for b in numbers[place : 4 * count : 4]))
    content = forged(SECTIONS[: -HEADER["sections"][2]] + planes, sections=[*HEADER["sections"][:2], len(planes)])
    assert "holds NaN or infinity" in outcome(content)


def test_other_versions_and_other_files(tmp_path):
    assert outcome(MAGIC + b"\x02" + GOOD[4:]) == (
        "net.rbs: is a compact network of version 2, and this program reads version 1; get the matching program"
    )
    assert "is no compact network" in outcome(b"")
    assert "is no compact network" in outcome(b"\x89PNG\r\n")
    with pytest.raises(UserError, match="none.rbs: cannot be read"):
        compact.read(tmp_path / "none.rbs")
    with pytest.raises(UserError, match="cannot be read"):
        compact.read(tmp_path)


class Run:
    """What pickle would do."""

    def __reduce__(self):
        return os.system, ("touch was-run",)


def test_nothing_is_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    evil = pickle.dumps(Run())
    for content in (evil, MAGIC + bytes([VERSION]) + evil, sealed(evil), forged(plain=evil), forged(evil, sections=[0, 0, len(evil)])):
        assert outcome(content) is not None
    assert not (tmp_path / "was-run").exists()


def test_a_file_that_never_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(reader, "MOST_BYTES", 1000)
    (tmp_path / "net.rbs").write_bytes(GOOD)
    with pytest.raises(UserError, match="has more than 1000 bytes, which no compact network has"):
        compact.read(tmp_path / "net.rbs")
