"""What has to be known of values in Variant's binary encoding: names, and members of objects.

What they hold is not looked at. Bytes that are no such values are a `ValueError`.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from millpond.engine.arrow.source.variant.encode import ARRAY, OBJECT

_VERSION: Final = 1
_SIZES: Final = dict(
    enumerate((0, 0, 0, 1, 2, 4, 8, 8, 5, 9, 17, 4, 8, 8, 4, None, None, 8, 8, 8, 16))
)
"""How many bytes a plain value has behind its first one, by the number of its type.

None for bytes and texts, which say it themselves.
"""


def names_in(metadata: bytes) -> tuple[bytes, ...]:
    """The names that ids stand for.

    >>> names_in(b"\\x01\\x02\\x00\\x01\\x03abc")
    (b'a', b'bc')
    """
    header = _slice(metadata, 0, 1)[0]
    if header & 0x0F != _VERSION:
        raise ValueError(f"is of version {header & 0x0F}; version {_VERSION} is known")
    width = (header >> 6) + 1
    count = _number(metadata, 1, width)
    start = 1 + width
    offsets = _numbers(metadata, start, count + 1, width)
    start += (count + 1) * width
    return tuple(_slice(metadata, start + one, start + end) for one, end in pairwise(offsets))


def members_of(value: bytes) -> list[tuple[int, bytes]] | None:
    """The ids and values of an object's members; None for what is no object.

    >>> members_of(bytes.fromhex("02 01 00 00 02 0c 07"))
    [(0, b'\\x0c\\x07')]
    """
    header = _slice(value, 0, 1)[0]
    if header & 3 != OBJECT:
        return None
    count, ids_at, id_width, width = _object(value, header)
    ids = _numbers(value, ids_at, count, id_width)
    offsets = _numbers(value, ids_at + count * id_width, count + 1, width)
    start = ids_at + count * id_width + (count + 1) * width
    # Values need not stand in the order of their ids, so an offset does not end the one before.
    return [
        (id_, _slice(value, start + offset, start + offset + _size(value, start + offset)))
        for id_, offset in zip(ids, offsets[:-1], strict=True)
    ]


def _size(value: bytes, at: int) -> int:
    """How many bytes the value takes that begins there."""
    header = _slice(value, at, at + 1)[0]
    kind, number = header & 3, header >> 2
    if kind == OBJECT:
        count, ids_at, id_width, width = _object(value, header, at)
        last = ids_at + count * (id_width + width)
        return last + width - at + _number(value, last, width)
    if kind == ARRAY:
        width, count_width = (number & 3) + 1, 4 if number & 4 else 1
        last = at + 1 + count_width + _number(value, at + 1, count_width) * width
        return last + width - at + _number(value, last, width)
    if kind == 1:
        return 1 + number
    if number not in _SIZES:
        raise ValueError(f"holds one of the type {number}, which is not known")
    size = _SIZES[number]
    return 5 + _number(value, at + 1, 4) if size is None else 1 + size


def _object(value: bytes, header: int, at: int = 0) -> tuple[int, int, int, int]:
    """How many members an object has, where its ids begin, how wide ids and offsets are."""
    number = header >> 2
    count_width = 4 if number & 16 else 1
    count = _number(value, at + 1, count_width)
    return count, at + 1 + count_width, (number >> 2 & 3) + 1, (number & 3) + 1


def _numbers(raw: bytes, start: int, count: int, width: int) -> list[int]:
    found = _slice(raw, start, start + count * width)
    if width == 1:
        return list(found)
    return [int.from_bytes(found[i : i + width], "little") for i in range(0, len(found), width)]


def _number(raw: bytes, start: int, width: int) -> int:
    return int.from_bytes(_slice(raw, start, start + width), "little")


def _slice(raw: bytes, start: int, end: int) -> bytes:
    if not start <= end <= len(raw):
        raise ValueError("is cut off")
    return raw[start:end]
