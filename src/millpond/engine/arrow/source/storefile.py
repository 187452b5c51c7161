"""An object of a store as a seekable file, so that pyarrow reads only the ranges it needs."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from millpond.base.store import Store


class StoreFile(io.RawIOBase):
    """Reads an object range by range; every read is one request."""

    def __init__(self, store: Store, name: str) -> None:
        super().__init__()
        self._store = store
        self._name = name
        self._size = store.head(name).size
        self._position = 0

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def tell(self) -> int:
        """Where the next read begins."""
        return self._position

    def size(self) -> int:
        """The object's length, as it was when it was opened."""
        return self._size

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a position."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = base + offset
        return self._position

    def read(self, size: int | None = -1, /) -> bytes:
        """The bytes from here on."""
        left = max(0, self._size - self._position)
        length = left if size is None or size < 0 else min(size, left)
        if length == 0:
            return b""
        data = self._store.get_range(self._name, self._position, length)
        self._position += len(data)
        return data

    def readall(self) -> bytes:
        """The rest."""
        return self.read()
