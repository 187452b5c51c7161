"""Pages put together by hand: layouts that no writer here makes, and what does not fit."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from tests.engine.arrow.pages.stored import LIBRARY, needs_library

from millpond.engine.arrow.source.pages import DamagedPage, StoredChunk, StoredLeaf, UnknownPage

pytestmark = needs_library

DATA, DICTIONARY, DATA_V2 = 0, 2, 3
PLAIN, RLE, RLE_DICTIONARY, BIT_PACKED = 0, 3, 8, 4
TEXT = StoredLeaf(("t",), (1,), pa.string(), None)
NUMBER = StoredLeaf(("n",), (0,), pa.int32(), 4)


def number(value: int) -> bytes:
    """A Thrift number: zigzag, seven bits a byte."""
    return varint(value << 1 if value >= 0 else (-value << 1) - 1)


def varint(value: int) -> bytes:
    found = b""
    while value > 127:
        found += bytes([value & 127 | 128])
        value >>= 7
    return found + bytes([value])


def fields(**given: int | bytes) -> bytes:
    """A Thrift struct of numbers (f1=…) and structs (s5=…), in order."""
    found, last = b"", 0
    for name, value in given.items():
        at = int(name[1:])
        kind = 12 if isinstance(value, bytes) else 5
        found += bytes([at - last << 4 | kind])
        found += value if isinstance(value, bytes) else number(value)
        last = at
    return found + b"\0"


def page(
    body: bytes, rows: int, encoding: int, *, kind: int = DATA, levels: int = RLE, size: int = -1
) -> bytes:
    about = fields(f1=rows, f2=encoding, f3=levels, f4=RLE)
    sizes = {"f1": kind, "f2": len(body) if size < 0 else size, "f3": len(body)}
    if kind == DICTIONARY:
        return fields(**sizes, s7=fields(f1=rows, f2=encoding)) + body
    return fields(**sizes, s5=about) + body


def plain(*texts: bytes) -> bytes:
    return b"".join(len(text).to_bytes(4, "little") + text for text in texts)


def with_levels(levels: bytes, values: bytes) -> bytes:
    return len(levels).to_bytes(4, "little") + levels + values


def read(*pages: bytes, leaf: StoredLeaf = TEXT, rows: int) -> list[object]:
    assert LIBRARY is not None
    whole = StoredChunk(LIBRARY, b"".join(pages), leaf, "UNCOMPRESSED", rows).next(rows)
    places = np.arange(0, rows, 2)
    some = StoredChunk(LIBRARY, b"".join(pages), leaf, "UNCOMPRESSED", rows).at(places)
    assert some.to_pylist() == whole.to_pylist()[::2]
    found: list[object] = whole.to_pylist()
    return found


WORDS = page(plain(b"weir", b"", b"a longer text than sixteen bytes"), 3, PLAIN, kind=DICTIONARY)
LONG = "a longer text than sixteen bytes"
# Two bits each: 0, 2, 1, 0, and so on; levels: a run of five that are there, then packed ones.
NUMBERS = bytes([2, 2 << 1 | 1, 0b00011000, 0b00011000, 0b00011000, 0b00011000])


def test_runs_of_both_kinds() -> None:
    levels = bytes([5 << 1, 1, 1 << 1 | 1, 0b00000101])
    body = with_levels(levels, NUMBERS)
    found = read(WORDS, page(body, 13, RLE_DICTIONARY), rows=13)
    assert found == ["weir", LONG, "", "weir", "weir", LONG, None, "", *[None] * 5]


def test_a_packed_run_that_is_cut_short() -> None:
    """Some writers leave out bytes of the last run that hold nothing."""
    levels = bytes([3 << 1 | 1, 255, 0b1])  # three bytes are promised
    body = with_levels(levels, bytes([2, 4 << 1 | 1, 0b00011000, 0b00011000, 0b01]))
    assert read(WORDS, page(body, 9, RLE_DICTIONARY), rows=9) == [
        *["weir", LONG, "", "weir"] * 2,
        "",
    ]


def test_numbers_of_no_bits() -> None:
    body = with_levels(bytes([6 << 1, 1]), bytes([0, 6 << 1]))
    assert read(WORDS, page(body, 6, RLE_DICTIONARY), rows=6) == ["weir"] * 6


def test_pages_without_rows_or_values() -> None:
    empty = page(with_levels(b"", b""), 0, PLAIN)
    nulls = page(with_levels(bytes([4 << 1, 0]), b""), 4, RLE_DICTIONARY)
    last = page(with_levels(bytes([1 << 1, 1]), plain(b"end")), 1, PLAIN)
    assert read(WORDS, empty, nulls, empty, last, rows=5) == [None] * 4 + ["end"]


def test_values_of_one_width() -> None:
    words = page(np.array([7, -9, 11], "<i4").tobytes(), 3, PLAIN, kind=DICTIONARY)
    numbered = page(bytes([2, 4 << 1, 2]), 4, RLE_DICTIONARY)
    direct = page(np.array([1, 2, 3], "<i4").tobytes(), 3, PLAIN)
    found = read(words, numbered, direct, leaf=NUMBER, rows=7)
    assert found == [11, 11, 11, 11, 1, 2, 3]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        with_levels(bytes([4 << 1, 2]), NUMBERS),  # a level that there is not
        with_levels(bytes([0, 1]), NUMBERS),  # a run of nothing
        with_levels(bytes([3 << 1, 1]), NUMBERS),  # too few levels
        with_levels(b"\xff" * 12, NUMBERS),  # a length without an end
        (1 << 31).to_bytes(4, "little") + NUMBERS,  # levels behind the page
        with_levels(bytes([4 << 1, 1]), b""),  # no numbers
        with_levels(bytes([4 << 1, 1]), bytes([33, 4 << 1, 1])),  # too many bits
        with_levels(bytes([4 << 1, 1]), bytes([2, 4 << 1, 3])),  # no such word
        with_levels(bytes([4 << 1, 1]), bytes([2, 3 << 1, 1])),  # too few numbers
        with_levels(bytes([4 << 1, 1]), bytes([2, 4 << 1, 4])),  # more than two bits
    ],
    ids=range(11),
)
def test_numbered_pages_in_which_something_does_not_fit(body: bytes) -> None:
    with pytest.raises(DamagedPage):
        read(WORDS, page(body, 4, RLE_DICTIONARY), rows=4)


@pytest.mark.parametrize(
    "values",
    [
        plain(b"one"),  # one of two
        plain(b"one", b"two")[:-1],
        plain(b"one") + b"\xff\xff\xff\xff" + b"two",
        plain(b"one") + b"\x03\0",
    ],
    ids=range(4),
)
def test_plain_pages_in_which_something_does_not_fit(values: bytes) -> None:
    with pytest.raises(DamagedPage):
        read(page(with_levels(bytes([2 << 1, 1]), values), 2, PLAIN), rows=2)


def test_dictionaries_in_which_something_does_not_fit() -> None:
    numbers = page(with_levels(bytes([4 << 1, 1]), bytes([2, 4 << 1, 1])), 4, RLE_DICTIONARY)
    for body in (plain(b"a")[:-1], plain(b"a"), b"\xff" * 8):
        with pytest.raises(DamagedPage):
            read(page(body, 2, PLAIN, kind=DICTIONARY), numbers, rows=4)
    short = page(bytes(7), 2, PLAIN, kind=DICTIONARY)  # one number and a half
    with pytest.raises(DamagedPage):
        read(short, page(bytes([1, 4 << 1, 1]), 4, RLE_DICTIONARY), leaf=NUMBER, rows=4)


def test_sizes_in_headers_that_are_not_true() -> None:
    body = with_levels(bytes([1 << 1, 1]), plain(b"end"))
    for size in (len(body) - 1, len(body) + 1):
        with pytest.raises(DamagedPage):
            read(page(body, 1, PLAIN, size=size), rows=1)
    with pytest.raises(DamagedPage):
        read(page(body, 1, PLAIN), rows=2)


def test_layouts_that_are_not_known() -> None:
    body = with_levels(bytes([1 << 1, 1]), plain(b"end"))
    for unknown in (
        page(body, 1, 7),
        page(body, 1, PLAIN, levels=BIT_PACKED),
        page(body, 1, RLE_DICTIONARY),  # there is no dictionary
    ):
        with pytest.raises(UnknownPage):
            read(unknown, rows=1)
    with pytest.raises(UnknownPage):
        read(page(b"", 0, 7, kind=DICTIONARY), page(body, 1, PLAIN), rows=1)
    with pytest.raises(UnknownPage):  # a second one
        read(WORDS, WORDS, page(body, 1, PLAIN), rows=1)
    with pytest.raises(DamagedPage):
        read(page(body, 1, PLAIN, kind=1), rows=1)  # a page of an index
