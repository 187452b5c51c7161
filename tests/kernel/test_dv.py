"""Deletion vectors: read what others wrote, write what others read, and refuse what is damaged."""

from __future__ import annotations

import random
import struct
import uuid
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyroaring import BitMap64

from millpond.base.errors import DeletionVectorError, TypeMismatchError
from millpond.kernel.dv import (
    DeletionVector,
    difference,
    inline,
    pack,
    union,
    z85_decode,
    z85_encode,
)
from millpond.kernel.roaring import read_positions, write_positions

if TYPE_CHECKING:
    from millpond.kernel.roaring import Positions

FILE_ID = uuid.UUID("d2c639aa-8816-431a-aaf6-d3fe2512ff61")
SAMPLE = DeletionVector("u", "ab^-aqEH.-t@S}K{vb[*k^", 4, 40, 6)


def positions(*values: int) -> Positions:
    return np.array(values, np.int64)


def decoded(vector: DeletionVector, content: bytes) -> Positions:
    """Decode a vector from a whole file, by the spans that it asks for."""
    parts = (content[start : start + length] for start, length in vector.spans)
    return vector.decode(*parts, table="t")


def in_file(data: bytes, *, offset: int = 1, cardinality: int = 0) -> tuple[DeletionVector, bytes]:
    content = b"\x01" + bytes(offset - 1) + struct.pack(">I", len(data)) + data
    content += struct.pack(">I", zlib.crc32(data))
    return DeletionVector("u", z85_encode(FILE_ID.bytes), offset, len(data), cardinality), content


def portable(bitmap: bytes) -> bytes:
    return struct.pack("<I", 1681511377) + bitmap


def test_base_85() -> None:
    assert z85_decode("HelloWorld") == bytes.fromhex("864FD26FB559F75B")
    assert z85_encode(bytes.fromhex("864FD26FB559F75B")) == "HelloWorld"
    for wrong in ("Hell", "Hell,", "Hellö", "#####", "Hel\nlo", "Hell_"):
        with pytest.raises(ValueError, match=r"multiple of 5|base 85|overflow"):
            z85_decode(wrong)
    with pytest.raises(ValueError, match="multiple of 4"):
        z85_encode(b"abc")


def test_base_85_of_writers_that_mark_what_is_lacking() -> None:
    assert z85_decode("HelloWorld##093") == bytes.fromhex("864FD26FB559F75B0300")
    assert z85_decode("###03") == b"\x03"
    assert z85_decode("#0001") == b"\x00\x00\x01"
    text = "^Bg9^0rr910000000000iXQKl0rr91000005c8Xg##093"
    assert DeletionVector("i", text, None, 34, 1).decode(table="t").tolist() == [3]
    for wrong in ("####0", "###3d", "##093HelloWorld"):
        with pytest.raises(ValueError, match=r"more bytes|overflow"):
            z85_decode(wrong)


@given(st.binary(max_size=40).map(lambda data: data + bytes(-len(data) % 4)))
def test_base_85_round_trip(data: bytes) -> None:
    assert z85_decode(z85_encode(data)) == data


def test_places() -> None:
    expected = "deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    assert SAMPLE.location("s3://lake/t") == f"s3://lake/t/ab/{expected}"
    assert SAMPLE.unique_id == "uab^-aqEH.-t@S}K{vb[*k^@4"
    bare = DeletionVector("u", "^-aqEH.-t@S}K{vb[*k^", None, 40, 6)
    assert bare.location("/data/t") == f"/data/t/{expected}"
    assert bare.unique_id == "u^-aqEH.-t@S}K{vb[*k^"
    absolute = DeletionVector("p", "file:///a%20b/x%23.bin", 1, 40, 6)
    assert absolute.location("/data/t") == "/a b/x#.bin"
    assert DeletionVector("p", "s3://b/a%20b.bin", 1, 4, 0).location("/t") == "s3://b/a b.bin"
    assert inline(positions(1)).location("/data/t") is None
    assert inline(positions(1)).spans == ()


@pytest.mark.parametrize(
    ("kind", "place", "message"),
    [
        ("u", "short", "no file's id"),
        ("u", "^-aqEH.-t@S}K{vb[*k\n", "no file's id"),
        ("u", "..^-aqEH.-t@S}K{vb[*k^", "not one directory"),
        ("u", "a/b^-aqEH.-t@S}K{vb[*k^", "not one directory"),
        ("p", "x.bin", "relative path"),
    ],
)
def test_places_that_are_none(kind: str, place: str, message: str) -> None:
    with pytest.raises(DeletionVectorError, match=message) as caught:
        DeletionVector(kind, place, 1, 40, 6).location("some/table")
    assert caught.value.table == "some/table"


def test_descriptors() -> None:
    row = {
        "storageType": "u",
        "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^",
        "offset": 4,
        "sizeInBytes": 40,
        "cardinality": 6,
    }
    assert DeletionVector.from_dict(row, table="t") == SAMPLE
    assert SAMPLE.to_dict() == row
    assert "offset" not in inline(positions(1)).to_dict()
    stray = {**inline(positions(1)).to_dict(), "offset": 0}
    assert DeletionVector.from_dict(stray, table="t") == inline(positions(1))


@pytest.mark.parametrize(
    "change",
    [
        {"storageType": "x"},
        {"storageType": None},
        {"pathOrInlineDv": None},
        {"sizeInBytes": None},
        {"cardinality": None},
        {"sizeInBytes": -1},
        {"cardinality": "6"},
        {"offset": -4},
    ],
)
def test_broken_descriptors(change: dict[str, Any]) -> None:
    with pytest.raises(DeletionVectorError, match="of the/table"):
        DeletionVector.from_dict({**SAMPLE.to_dict(), **change}, table="the/table")


def test_a_vector_of_the_protocols_example() -> None:
    text = "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"
    vector = DeletionVector("i", text, None, 44, 6)
    assert vector.decode(table="t").tolist() == [3, 4, 7, 11, 18, 29]
    assert vector.decode(table="t").dtype == np.int64


def test_the_older_layout_is_named() -> None:
    text = "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"
    with pytest.raises(DeletionVectorError, match="native layout"):
        DeletionVector("i", text, None, 40, 6).decode(table="t")


SETS: tuple[list[int], ...] = (
    [],
    [0],
    [3, 4, 7, 11, 18, 29],
    list(range(100_000)),
    list(range(0, 200_000, 2)),
    [2**16 - 1, 2**16, 2**32 - 1, 2**32, 2**33 + 5, 2**62],
    [*range(70_000, 80_000), *range(2**32, 2**32 + 10, 3)],
    [n * 70_000 for n in range(200)],
)


@pytest.mark.parametrize("values", SETS, ids=lambda v: f"{len(v)} from {v[:2]}")
def test_every_kind_of_container(values: list[int]) -> None:
    given_ = positions(*values)
    bitmap = write_positions(given_)
    assert read_positions(bitmap, expected=len(values)).tolist() == values
    assert list(BitMap64.deserialize(bitmap)) == values
    plain = BitMap64(values).serialize()
    assert read_positions(plain, expected=len(values)).tolist() == values
    vector = inline(given_)
    assert vector.cardinality == len(values)
    assert vector.decode(table="t").tolist() == values


_RUNS = st.tuples(st.integers(0, 2**34), st.integers(1, 9000), st.integers(1, 5)).map(
    lambda run: range(run[0], run[0] + run[1] * run[2], run[2])
)
_SETS = st.lists(_RUNS, max_size=4).map(lambda runs: sorted({n for run in runs for n in run}))


@given(st.lists(_SETS, max_size=4), st.sampled_from(["", "ab"]))
def test_many_vectors_in_one_file(many: list[list[int]], prefix: str) -> None:
    packed = pack([positions(*values) for values in many], file_id=FILE_ID, prefix=prefix)
    assert packed.path.startswith(f"{prefix}/deletion_vector_" if prefix else "deletion_vector_")
    for vector, values in zip(packed.vectors, many, strict=True):
        assert vector.location("t") == f"t/{packed.path}"
        assert vector.cardinality == len(values)
        assert decoded(vector, packed.content).tolist() == values
    assert len({vector.unique_id for vector in packed.vectors}) == len(many)


def test_spans_are_what_is_needed() -> None:
    near, content = in_file(portable(write_positions(positions(5))), offset=100, cardinality=1)
    assert near.spans == ((0, len(content)),)
    far, content = in_file(portable(write_positions(positions(5))), offset=1 << 20, cardinality=1)
    assert far.spans == ((0, 1), (1 << 20, len(content) - (1 << 20)))
    assert decoded(far, content).tolist() == [5]
    with pytest.raises(DeletionVectorError, match="version 2"):
        decoded(far, b"\x02" + content[1:])


def test_without_an_offset_it_is_behind_the_version() -> None:
    vector, content = in_file(portable(write_positions(positions(5, 9))), cardinality=2)
    bare = DeletionVector("u", vector.path_or_inline, None, vector.size, 2)
    assert decoded(bare, content).tolist() == [5, 9]


GOOD = portable(write_positions(positions(*range(5000), 70_000, 70_002)))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda c: b"", "its file is empty"),
        (lambda c: b"\x00" + c[1:], "version 0"),
        (lambda c: c[:-1], "ends 1 bytes too early"),
        (lambda c: c[:1], "too early"),
        (lambda c: c[:1] + struct.pack(">I", 7) + c[5:], "says 7 bytes, the log says"),
        (lambda c: c[:-1] + bytes([c[-1] ^ 1]), "checksum"),
        (lambda c: c[:20] + bytes([c[20] ^ 1]) + c[21:], "checksum"),
    ],
)
def test_damaged_files(damage: Any, message: str) -> None:
    vector, content = in_file(GOOD, cardinality=5002)
    assert len(decoded(vector, content)) == 5002
    with pytest.raises(DeletionVectorError, match=message) as caught:
        decoded(vector, damage(content))
    assert vector.unique_id in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize(
    ("data", "cardinality", "message"),
    [
        (b"", 0, "too short"),
        (struct.pack("<I", 7), 0, "begins with 7"),
        (struct.pack("<I", 1681511376) + bytes(8), 0, "native layout"),
        (struct.pack(">I", 1681511377) + bytes(8), 0, "begins with"),
        (portable(b""), 0, "ends too early"),
        (portable(b"\xff" * 8), 0, "too few bytes for 18446744073709551615 buckets"),
        (GOOD[:-1], 0, "ends inside of a container"),
        (GOOD + b"\x00" * 4, 5002, "4 bytes follow"),
        (GOOD + b"\x01", 5002, "1 bytes follow"),
        (portable(struct.pack("<QIII", 1, 0, 12346, 70_000)), 0, "70000 containers"),
        (portable(struct.pack("<QIII", 1, 0, 9, 9)), 0, "begins no bitmap"),
        (portable(struct.pack("<QIII", 1, 1 << 31, 12346, 0)), 0, "follows the bucket"),
        (portable(struct.pack("<QIIIIII", 2, 3, 12346, 0, 3, 12346, 0)), 0, "follows the bucket"),
        (
            portable(struct.pack("<QIIIHHIHH", 1, 0, 12346, 1, 0, 1, 16, 9, 9)),
            2,
            "positions of a container are not in order",
        ),
        (
            portable(struct.pack("<QIIIHHHHIIHH", 1, 0, 12346, 2, 5, 0, 5, 0, 24, 26, 1, 2)),
            2,
            "containers of a bitmap are not in order",
        ),
        (
            portable(struct.pack("<QIIBHHHHHHH", 1, 0, 12347, 1, 0, 1, 2, 7, 0, 7, 0)),
            2,
            "runs of a container are not in order",
        ),
        (
            portable(struct.pack("<QIIBHHHHH", 1, 0, 12347, 1, 0, 1, 1, 65535, 1)),
            2,
            "runs of a container are not in order",
        ),
        (
            portable(struct.pack("<QIIBHHHHH", 1, 0, 12347, 1, 0, 1, 1, 7, 0)),
            2,
            "says 2 positions and has 1",
        ),
        (
            portable(struct.pack("<QIIIHHI", 1, 0, 12346, 1, 0, 4999, 16) + bytes(8192)),
            5000,
            "says 5000 positions and has 0",
        ),
    ],
)
def test_damaged_bitmaps(data: bytes, cardinality: int, message: str) -> None:
    """Bitmaps that are wrong under a checksum that is right."""
    vector, content = in_file(data, cardinality=cardinality)
    with pytest.raises(DeletionVectorError, match=message):
        decoded(vector, content)


def test_the_cardinality_has_to_be_the_logs() -> None:
    vector, content = in_file(GOOD, cardinality=5001)
    with pytest.raises(DeletionVectorError, match="5002 positions, not 5001"):
        decoded(vector, content)


def test_a_small_header_does_not_ask_for_much_memory() -> None:
    """2,000 containers in few bytes that claim 131 million positions: the log knows better."""
    body = struct.pack("<QII", 1, 0, 12347 | (1999 << 16)) + b"\xff" * 250
    body += b"".join(struct.pack("<HH", n, 65535) for n in range(2000)) + bytes(8000)
    body += struct.pack("<HHH", 1, 0, 65535) * 2000
    vector, content = in_file(portable(body), cardinality=7)
    with pytest.raises(DeletionVectorError, match="131072000 positions, not 7"):
        decoded(vector, content)


@pytest.mark.parametrize(("size", "padding"), [(30, 0), (44, 4), (37, 0), (41, 0)])
def test_inline_sizes(size: int, padding: int) -> None:
    text = inline(positions(3, 4, 7, 11, 18, 29)).path_or_inline
    text += z85_encode(bytes(padding))
    with pytest.raises(DeletionVectorError, match="is corrupt"):
        DeletionVector("i", text, None, size, 6).decode(table="t")


@given(st.integers(0, len(SETS) - 1), st.integers(0, 2**32), st.integers(1, 8))
@example(2, 0, 1)
def test_noise_is_refused_or_means_what_it_says(which: int, seed: int, changes: int) -> None:
    """Random damage to a bitmap: an error, or ascending positions of the right number."""
    rnd = random.Random(seed)
    bitmap = bytearray(write_positions(positions(*SETS[which])))
    for _ in range(changes):
        kind = rnd.randrange(3)
        at = rnd.randrange(len(bitmap)) if bitmap else 0
        if kind == 0 and bitmap:
            bitmap[min(at, rnd.randrange(60))] = rnd.choice((0, 1, 255, rnd.randrange(256)))
        elif kind == 1:
            del bitmap[at : at + rnd.randrange(1, 9)]
        else:
            bitmap[at:at] = rnd.randbytes(rnd.randrange(1, 9))
    try:
        found = read_positions(bytes(bitmap), expected=len(SETS[which]))
    except ValueError:
        return
    assert len(found) == len(SETS[which])
    assert (found[1:] > found[:-1]).all()
    assert not len(found) or found[0] >= 0


@given(st.binary(max_size=200), st.integers(0, 20))
def test_any_bytes_at_all(data: bytes, cardinality: int) -> None:
    try:
        found = read_positions(data, expected=cardinality)
    except ValueError:
        return
    assert len(found) == cardinality


def test_positions_are_checked_when_written() -> None:
    assert inline(positions(9, 5, 9)).decode(table="t").tolist() == [5, 9]
    for wrong in (positions(-1), np.array([1.5])):
        with pytest.raises(TypeMismatchError, match="whole positions"):
            inline(wrong)


@given(_SETS, _SETS)
def test_union_and_difference(left: list[int], right: list[int]) -> None:
    a, b = positions(*left), positions(*right)
    assert union(a, b).tolist() == sorted({*left, *right})
    assert difference(a, b).tolist() == sorted({*left} - {*right})
    assert union(a, b).dtype == difference(a, b).dtype == np.int64
