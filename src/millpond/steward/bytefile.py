"""`ByteFile`: the bytes of a node as a file that one can seek in, in bounded memory.

What is read from its beginning to its end is hashed on the way, and damage is an error before the
last bytes are given. Single ranges can't be checked like that; `pond fsck` checks everything.
"""

from __future__ import annotations

import io
from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

from blake3 import blake3

from millpond.base.errors import IntegrityError, ObjectNotFoundError
from millpond.fs.entry import EntryType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millpond.fs.entry import Row
    from millpond.steward.scope import Scope

BLOCK_BYTES: Final = 4 << 20


def open_bytes(scope: Scope, path: str, *, block_bytes: int = BLOCK_BYTES) -> io.BufferedReader:
    """The bytes of a path as a file; one that is computed is so as a whole."""
    if scope.row(path).entry_type is EntryType.DYNAMIC_FILE:
        return io.BufferedReader(io.BytesIO(scope.read_bytes(path)))
    file = ByteFile(scope, path, scope.byte_rows(path))
    return io.BufferedReader(file, max(1, min(block_bytes, file.size)))


class ByteFile(io.RawIOBase):
    """The contents of some rows, one behind the other."""

    def __init__(self, scope: Scope, path: str, rows: Sequence[Row]) -> None:
        self.path = path
        self.size = sum(row.size or 0 for row in rows)
        self._scope = scope
        self._rows = rows
        self._ends = list(accumulate(row.size or 0 for row in rows))
        self._position = 0
        self._part = -1
        self._inline: bytes | None = None
        self._hasher = blake3()
        self._hashed = 0
        """How much of the current part was hashed: it is read in order as long as this grows."""

    def readable(self) -> bool:
        """Yes."""
        return True

    def seekable(self) -> bool:
        """Yes."""
        return True

    def tell(self) -> int:
        """Where the next byte is read."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go somewhere else; nothing is read for it."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self.size}[whence]
        self._position = max(0, start + offset)
        return self._position

    def readinto(self, buffer: Any) -> int:
        """As much of one row as fits."""
        if self._position >= self.size:
            return 0
        part = bisect_right(self._ends, self._position)
        if part != self._part:
            self._enter(part)
        size = self._rows[part].size or 0
        start = self._position - (self._ends[part] - size)
        found = self._read(self._rows[part], start, min(len(buffer), size - start))
        buffer[: len(found)] = found
        self._position += len(found)
        return len(found)

    def readall(self) -> bytes:
        """The rest."""
        rest = bytearray(max(0, self.size - self._position))
        at = 0
        with memoryview(rest) as view:
            while count := self.readinto(view[at : at + BLOCK_BYTES]):
                at += count
        return bytes(rest)

    def _enter(self, part: int) -> None:
        row = self._rows[part]
        self._part, self._hasher, self._hashed = part, blake3(), 0
        self._inline = self._scope.tree.content(row)
        if self._inline is not None:  # small, and so it is checked as a whole
            chunks = self._scope.pond.blobs.read(row, self._inline, path=self.path)
            self._inline = b"".join(chunks)

    def _read(self, row: Row, start: int, length: int) -> bytes:
        if self._inline is not None:
            return self._inline[start : start + length]
        try:
            found = self._scope.pond.blobs.read_range(row, None, start, length)
        except ObjectNotFoundError as error:
            raise self._damaged(row, "is gone") from error
        if len(found) < length:
            raise self._damaged(row, f"ends after {start + len(found)} of {row.size} bytes")
        if start == self._hashed:
            self._hasher.update(found)
            self._hashed += len(found)
            if self._hashed == row.size and self._hasher.hexdigest() != row.blake3:
                raise self._damaged(row, "is damaged: it has another hash")
        return found

    def _damaged(self, row: Row, what: str) -> IntegrityError:
        return IntegrityError(
            f"the content of {self.path} (version {row.version}) {what}",
            path=self.path,
            hint="pond fsck tells what else is damaged; restore it from a backup",
        )
