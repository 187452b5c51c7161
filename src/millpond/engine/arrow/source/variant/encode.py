"""Objects and arrays in Variant's binary encoding, out of members that are encoded already."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

OBJECT: Final = 2
ARRAY: Final = 3
_MOST_SMALL: Final = 255
"""So many members are counted by one byte, more by four."""


def object_of(ids: Sequence[int], values: Sequence[bytes]) -> bytes:
    """An object of these members; ids are in the order of the names that they stand for.

    >>> object_of([0], [b"\\x0c\\x07"]).hex(" ")
    '02 01 00 00 02 0c 07'
    """
    offsets = [0, *accumulate(map(len, values))]
    id_width, offset_width = width_of(max(ids, default=0)), width_of(offsets[-1])
    large = len(ids) > _MOST_SMALL
    header = large << 4 | id_width - 1 << 2 | offset_width - 1
    start = bytes([header << 2 | OBJECT]) + _count(len(ids), large=large)
    return start + _packed(ids, id_width) + _packed(offsets, offset_width) + b"".join(values)


def array_of(values: Sequence[bytes]) -> bytes:
    """An array of these elements.

    >>> array_of([b"\\x00", b"\\x04"]).hex(" ")
    '03 02 00 01 02 00 04'
    """
    offsets = [0, *accumulate(map(len, values))]
    width = width_of(offsets[-1])
    large = len(values) > _MOST_SMALL
    start = bytes([(large << 2 | width - 1) << 2 | ARRAY]) + _count(len(values), large=large)
    return start + _packed(offsets, width) + b"".join(values)


def width_of(number: int) -> int:
    """How many bytes hold a number that is not negative: 1 to 4.

    >>> width_of(0), width_of(255), width_of(256)
    (1, 1, 2)
    """
    return max((number.bit_length() + 7) // 8, 1)


def _count(count: int, *, large: bool) -> bytes:
    return count.to_bytes(4 if large else 1, "little")


def _packed(numbers: Sequence[int], width: int) -> bytes:
    if width == 1:
        return bytes(numbers)
    return b"".join(number.to_bytes(width, "little") for number in numbers)
