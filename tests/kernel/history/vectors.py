"""Deletion vectors as bytes and as the log describes them, written by hand."""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, Any, Final

from pyroaring import BitMap64

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterable, Mapping

MAGIC: Final = 1681511377
DIGITS: Final = (
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
)


def inline(deleted: Iterable[int]) -> dict[str, Any]:
    """A vector that stands in the log itself."""
    positions = sorted(deleted)
    blob = _blob(positions)
    return {
        "storageType": "i",
        "pathOrInlineDv": z85(blob + bytes(-len(blob) % 4)),
        "sizeInBytes": len(blob),
        "cardinality": len(positions),
    }


def in_file(deleted: Iterable[int], name: uuid.UUID) -> tuple[dict[str, Any], bytes]:
    """A vector in a file of its own beside the data, and that file's bytes."""
    positions = sorted(deleted)
    blob = _blob(positions)
    about = {
        "storageType": "u",
        "pathOrInlineDv": z85(name.bytes),
        "offset": 1,
        "sizeInBytes": len(blob),
        "cardinality": len(positions),
    }
    checksum = struct.pack(">I", zlib.crc32(blob))
    return about, b"\x01" + struct.pack(">I", len(blob)) + blob + checksum


def z85(data: bytes) -> str:
    """Bytes, a multiple of four of them, as text: five characters for every four."""
    found: list[str] = []
    for (number,) in struct.iter_unpack(">I", data):
        word = []
        for _ in range(5):
            number, digit = divmod(number, 85)
            word.append(DIGITS[digit])
        found += reversed(word)
    return "".join(found)


def decoded(about: Mapping[str, Any]) -> frozenset[int] | None:
    """The positions of a vector that stands in the log; None if it is not what it says it is."""
    text, size = about["pathOrInlineDv"], about["sizeInBytes"]
    if about["storageType"] != "i" or len(text) % 5 or not set(text) <= set(DIGITS):
        return None
    numbers = [_number(text[i : i + 5]) for i in range(0, len(text), 5)]
    if any(number >= 1 << 32 for number in numbers):
        return None
    data = b"".join(struct.pack(">I", number) for number in numbers)[:size]
    if len(data) != size or data[:4] != struct.pack("<I", MAGIC):
        return None
    try:
        found = frozenset(BitMap64.deserialize(data[4:]))
    except ValueError:
        return None
    return found if len(found) == about["cardinality"] else None


def _number(word: str) -> int:
    number = 0
    for digit in word:
        number = number * 85 + DIGITS.index(digit)
    return number


def _blob(positions: list[int]) -> bytes:
    bitmap: bytes = BitMap64(positions).serialize()
    return struct.pack("<I", MAGIC) + bitmap
