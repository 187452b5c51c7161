"""Variant's binary encoding: what is written is as small as it can be, and sizes are known."""

from __future__ import annotations

import pytest

from millpond.engine.arrow.source.variant.decode import members_of, names_in
from millpond.engine.arrow.source.variant.encode import array_of, object_of

SIZES = {0: 1, 1: 1, 2: 1, 3: 2, 4: 3, 5: 5, 6: 9, 7: 9, 8: 6, 9: 10, 10: 18, 11: 5}
SIZES |= {12: 9, 13: 9, 14: 5, 17: 9, 18: 9, 19: 9, 20: 17}
"""How long plain values are, by the number of their type."""
VALUES = [
    *(bytes([number << 2]).ljust(size, b"\xff") for number, size in SIZES.items()),
    b"\x3c\x03\x00\x00\x00abc",
    b"\x40\x00\x01\x00\x00" + b"x" * 256,
    b"\x01",
    b"\x0dabc",
    b"\xfd" + b"x" * 63,
    array_of([]),
    array_of([b"\x00", b"\x0dabc"]),
    array_of([b"\x00"] * 300),
    array_of([b"\x3c\x00\x00\x02\x00" + bytes(1 << 17)]),
    object_of([], []),
    object_of([1, 70_000], [b"\x00", b"\x0dabc"]),
    object_of(range(300), [b"\x0dabc"] * 300),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: value[:8].hex())
def test_members_end_where_they_end(value: bytes) -> None:
    made = object_of([7, 3, 5], [value, b"\x04", value])
    assert members_of(made) == [(7, value), (3, b"\x04"), (5, value)]


def test_members_need_not_stand_in_order() -> None:
    # Offsets 2 and 0 for the ids 0 and 1, as Spark writes them.
    assert members_of(bytes.fromhex("02 02 0001 020004 0c02 0c01")) == [
        (0, bytes.fromhex("0c01")),
        (1, bytes.fromhex("0c02")),
    ]


def test_other_values_have_no_members() -> None:
    assert members_of(b"\x00") is members_of(array_of([])) is None


@pytest.mark.parametrize(("count", "start"), [(255, "03 ff"), (256, "17 00010000")])
def test_their_number_takes_one_byte_or_four(count: int, start: str) -> None:
    assert array_of([b"\x00"] * count).startswith(bytes.fromhex(start))
    # The first byte of an object has other bits for the same.
    first = "02" if count == 255 else "46"
    assert object_of([0] * count, [b"\x00"] * count).startswith(bytes.fromhex(first + start[2:]))


@pytest.mark.parametrize(("size", "header"), [(255, 0), (256, 1), (1 << 16, 2), (1 << 24, 3)])
def test_offsets_take_one_byte_to_four(size: int, header: int) -> None:
    assert array_of([bytes(size)])[0] == header << 2 | 3
    assert object_of([0], [bytes(size)])[0] == header << 2 | 2


@pytest.mark.parametrize(("id_", "header"), [(255, 0), (256, 4), (1 << 16, 8), (1 << 24, 12)])
def test_ids_take_one_byte_to_four(id_: int, header: int) -> None:
    assert object_of([id_], [b"\x00"])[0] == header << 2 | 2


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_names_of_any_width(width: int) -> None:
    numbers = b"".join(number.to_bytes(width, "little") for number in (2, 0, 1, 3))
    # The bit 16 says that names are sorted.
    assert names_in(bytes([width - 1 << 6 | 16 | 1]) + numbers + b"abc") == (b"a", b"bc")
