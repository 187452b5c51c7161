"""Deletion vectors: which rows of a data file are deleted, beside the file or inside the log.

A descriptor in an add action says where the vector is. `spans` are the bytes to read of the file
at `location`, `decode` makes row positions of them, `pack` and `inline` write new vectors. The
bitmap itself is in `roaring.py`.

>>> import numpy as np
>>> vector = inline(np.array([3, 4, 7, 11, 18, 29]))
>>> vector.storage_type, vector.size, vector.cardinality
('i', 44, 6)
>>> vector.decode(table="t")
array([ 3,  4,  7, 11, 18, 29])
"""

from __future__ import annotations

import base64
import struct
import uuid
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from millpond.base.errors import DeletionVectorError, TypeMismatchError
from millpond.kernel.paths import resolve
from millpond.kernel.roaring import read_positions, write_positions

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from millpond.kernel.roaring import Positions

VERSION: Final = 1
MAGIC: Final = 1681511377
_NATIVE_MAGIC: Final = 1681511376
_FIRST_OFFSET: Final = 1
_AROUND: Final = 8
"""A vector in a file has its size before and its checksum behind it, four bytes each."""
_NEAR: Final = 1 << 14
"""A vector so near to the start of its file is read together with the version that stands there."""
_UUID_CHARACTERS: Final = 20
_Z85: Final = (
    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
)
_B85: Final = (
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
)
_Z85_CHARACTERS: Final = frozenset(_Z85.decode("ascii"))
_FROM_Z85: Final = bytes.maketrans(_Z85, _B85)
_TO_Z85: Final = bytes.maketrans(_B85, _Z85)


@dataclass(frozen=True, slots=True)
class DeletionVector:
    """A descriptor as actions hold it: `u` a file of the table, `p` any file, `i` in the log."""

    storage_type: str
    path_or_inline: str
    offset: int | None
    size: int
    cardinality: int

    @classmethod
    def from_dict(cls, row: Mapping[str, Any], *, table: str) -> DeletionVector:
        """A descriptor from an action's member `deletionVector`; a broken one is an error."""
        kind, place = row.get("storageType"), row.get("pathOrInlineDv")
        if kind not in ("u", "p", "i") or not isinstance(place, str):
            raise _broken(f"{dict(row)!r}", table, f"has the unknown storage type {kind!r}")
        numbers = [row.get(name) for name in ("offset", "sizeInBytes", "cardinality")]
        for number in numbers:
            if number is not None and (not isinstance(number, int) or number < 0):
                raise _broken(f"{kind}{place}", table, f"has {number!r} where a count should be")
        offset, size, cardinality = numbers
        if size is None or cardinality is None:
            raise _broken(f"{kind}{place}", table, "lacks its size or its cardinality")
        return cls(kind, place, None if kind == "i" else offset, size, cardinality)

    def to_dict(self) -> dict[str, Any]:
        """As it stands in an action."""
        found: dict[str, Any] = {
            "storageType": self.storage_type,
            "pathOrInlineDv": self.path_or_inline,
            "sizeInBytes": self.size,
            "cardinality": self.cardinality,
        }
        return found if self.offset is None else {**found, "offset": self.offset}

    @property
    def unique_id(self) -> str:
        """What tells this vector from every other of the same data file."""
        at = "" if self.offset is None else f"@{self.offset}"
        return f"{self.storage_type}{self.path_or_inline}{at}"

    def location(self, table: str) -> str | None:
        """The path or URL of the vector's file; None when the vector is in the log."""
        if self.storage_type == "i":
            return None
        if self.storage_type == "p":
            if not self.path_or_inline.startswith("/") and ":/" not in self.path_or_inline:
                raise self._error(table, "is said to be absolute and has a relative path")
            return resolve(table, self.path_or_inline)
        prefix = self.path_or_inline[:-_UUID_CHARACTERS]
        if "/" in prefix or "\\" in prefix or prefix in (".", ".."):
            raise self._error(table, f"has the prefix {prefix!r}, which is not one directory")
        try:
            name = _file_name(uuid.UUID(bytes=z85_decode(self.path_or_inline[len(prefix) :])))
        except ValueError as error:
            raise self._error(table, f"has no file's id in its path: {error}") from error
        return f"{table}/{prefix}/{name}" if prefix else f"{table}/{name}"

    @property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """The start and length of each part of the file that `decode` has to be given."""
        if self.storage_type == "i":
            return ()
        start, length = self._start, self.size + _AROUND
        if start <= _NEAR:
            return ((0, start + length),)
        return ((0, 1), (start, length))

    @property
    def _start(self) -> int:
        return _FIRST_OFFSET if self.offset is None else self.offset

    def decode(self, *contents: bytes, table: str) -> Positions:
        """The deleted positions, ascending, from the bytes of each of the `spans`, in order."""
        try:
            data = self._inline_data() if self.storage_type == "i" else self._file_data(contents)
            return read_positions(_bitmap(data), expected=self.cardinality)
        except ValueError as error:
            raise self._error(table, f"is corrupt: {error}") from error

    def _inline_data(self) -> bytes:
        data = z85_decode(self.path_or_inline)
        if not self.size <= len(data) < self.size + 4:
            raise ValueError(f"it has {len(data)} bytes and should have {self.size}")
        return data[: self.size]

    def _file_data(self, contents: tuple[bytes, ...]) -> bytes:
        if len(contents) != len(self.spans):
            raise ValueError(f"{len(contents)} parts of its file were read, not {len(self.spans)}")
        if not contents[0]:
            raise ValueError("its file is empty")
        if contents[0][0] != VERSION:
            raise ValueError(f"its file has the version {contents[0][0]}, known is {VERSION}")
        part = contents[-1][self._start :] if len(contents) == 1 else contents[-1]
        if len(part) < self.size + _AROUND:
            missing = self.size + _AROUND - len(part)
            raise ValueError(f"its file ends {missing} bytes too early")
        (size,) = struct.unpack_from(">I", part)
        if size != self.size:
            raise ValueError(f"its file says {size} bytes, the log says {self.size}")
        data = part[4 : 4 + size]
        (checksum,) = struct.unpack_from(">I", part, 4 + size)
        if zlib.crc32(data) != checksum:
            raise ValueError("the checksum in its file is another")
        return data

    def _error(self, table: str, problem: str) -> DeletionVectorError:
        return _broken(self.unique_id, table, problem)


class Packed(NamedTuple):
    """A file of vectors that is to be written: its path in the table, its bytes, descriptors."""

    path: str
    content: bytes
    vectors: tuple[DeletionVector, ...]


def pack(many: Iterable[Positions], *, file_id: uuid.UUID, prefix: str = "") -> Packed:
    """One file for the vectors of many data files."""
    place = prefix + z85_encode(file_id.bytes)
    parts, vectors, offset = [bytes([VERSION])], [], 1
    for positions in many:
        data, count = _encoded(positions)
        if offset + len(data) >= 1 << 31:
            raise TypeMismatchError(
                "one file can't hold these deletion vectors: it would reach 2 GiB",
                hint="write them to several files",
            )
        vectors.append(DeletionVector("u", place, offset, len(data), count))
        parts += [struct.pack(">I", len(data)), data, struct.pack(">I", zlib.crc32(data))]
        offset += len(data) + _AROUND
    name = _file_name(file_id)
    return Packed(f"{prefix}/{name}" if prefix else name, b"".join(parts), tuple(vectors))


def inline(positions: Positions) -> DeletionVector:
    """A vector that stands in the log itself: for few rows."""
    data, count = _encoded(positions)
    text = z85_encode(data + bytes(-len(data) % 4))
    return DeletionVector("i", text, None, len(data), count)


def union(left: Positions, right: Positions) -> Positions:
    """The positions of both, ascending."""
    return np.union1d(left, right).astype(np.int64, copy=False)


def difference(left: Positions, right: Positions) -> Positions:
    """The positions of the first that the second does not have, ascending."""
    return np.setdiff1d(left, right).astype(np.int64, copy=False)


def z85_encode(data: bytes) -> str:
    """Bytes, four at a time, as ZeroMQ's base 85."""
    if len(data) % 4:
        raise ValueError(f"{len(data)} bytes are no multiple of 4")
    return base64.b85encode(data).translate(_TO_Z85).decode("ascii")


def z85_decode(text: str) -> bytes:
    """ZeroMQ's base 85 as bytes; raises ValueError where it is none.

    >>> z85_decode("HelloWorld").hex()
    '864fd26fb559f75b'
    """
    if len(text) % 5:
        raise ValueError(f"{len(text)} characters are no multiple of 5")
    if not set(text) <= _Z85_CHARACTERS:
        raise ValueError("it has characters that are not of base 85")
    # No four bytes begin with '#': some writers put one for each byte that the last four lack.
    lacking = len(text[-5:]) - len(text[-5:].lstrip("#"))
    if 0 < lacking < 4:
        text = text[:-5] + "0" * lacking + text[-5 + lacking :]
    data = base64.b85decode(text.encode("ascii").translate(_FROM_Z85))
    if not 0 < lacking < 4:
        return data
    if any(data[-4 : lacking - 4]):
        raise ValueError("its last characters say more bytes than they may")
    return data[:-4] + data[lacking - 4 :]


def _encoded(positions: Positions) -> tuple[bytes, int]:
    """A vector's bytes, and how many different positions it has."""
    found = np.unique(positions)
    if found.size and (found.dtype.kind not in "iu" or found[0] < 0):
        raise TypeMismatchError(
            f"rows have whole positions from 0 on, not {found[:5]}",
            hint="give an int64 array of positions in the file",
        )
    return struct.pack("<I", MAGIC) + write_positions(found.astype(np.int64)), len(found)


def _bitmap(data: bytes) -> bytes:
    if len(data) < 4:
        raise ValueError("it is too short")
    (magic,) = struct.unpack_from("<I", data)
    if _NATIVE_MAGIC in (magic, int.from_bytes(data[:4], "big")):
        raise ValueError("it has the native layout, and only the portable one is known")
    if magic != MAGIC:
        raise ValueError(f"it begins with {magic}, not with {MAGIC}")
    return data[4:]


def _file_name(file_id: uuid.UUID) -> str:
    return f"deletion_vector_{file_id}.bin"


def _broken(which: str, table: str, problem: str) -> DeletionVectorError:
    return DeletionVectorError(
        f"the deletion vector {which} of {table} {problem}",
        table=table,
        hint="it is not known which rows are deleted: restore the file, or read an older version",
    )
