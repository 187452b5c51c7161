"""Files of `pond://` in the hand: one to read, and one that becomes a version when it is closed."""

from __future__ import annotations

import io
import tempfile
from typing import IO, TYPE_CHECKING, Any, Final, Self

from millpond.base.errors import PathExistsError, PathTypeError
from millpond.fs.entry import EntryType
from millpond.steward.bytefile import BLOCK_BYTES, open_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from millpond.steward.scope import Scope
    from millpond.surfaces.fsspec import PondFileSystem

IN_MEMORY: Final = 8 << 20
CHUNK_BYTES: Final = 1 << 20


def open_to_read(scope: Scope, path: str, block_bytes: int | None) -> IO[bytes]:
    """The bytes of a node; the rows of a table, a series or a collection as a file of Parquet."""
    if not scope.row(path).entry_type.is_table:
        return open_bytes(scope, path, block_bytes=block_bytes or BLOCK_BYTES)
    from millpond.steward.rowfiles import write_rows

    file = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 - given away
    write_rows("parquet", file, scope.plan(path).execute(engine=scope.pond.engine))
    file.seek(0)
    return file


class NewFile(io.RawIOBase):
    """A file that is written: it waits on this machine, and is kept when it is closed.

    In a transaction it is seen once that is committed. If a `with` block around it fails, nothing
    is kept.
    """

    def __init__(self, fs: PondFileSystem, path: str, mode: str) -> None:
        self.fs = fs
        self.path = path
        self.mode = mode
        self._spool = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115
        self._before = 0
        """Bytes that are there already, and are not written again."""
        self._is_discarded = False
        self._kind = self._check()

    def _check(self) -> EntryType:
        """Whether the file can be written, before anything is."""
        scope = self.fs.scope()
        if not scope.exists(self.path):
            return EntryType.DATA
        kind = scope.stat(self.path).entry_type
        if self.mode == "xb":
            raise PathExistsError(
                f"there is a {kind} at {self.path} already", path=self.path, hint="open it with wb"
            )
        if kind is EntryType.DATA_SERIES and self.mode != "ab":
            raise PathTypeError(
                f"{self.path} is a {kind}: what is in it stays",
                path=self.path,
                hint="open it with ab to add to it, or remove it first",
            )
        if kind.is_table:
            raise PathTypeError(
                f"{self.path} is a {kind}: as a file it can only be read",
                path=self.path,
                hint="write its rows with pond.write()",
            )
        if self.mode == "ab":
            self._go_on(scope, kind)
        return kind

    def _go_on(self, scope: Scope, kind: EntryType) -> None:
        if kind is EntryType.DATA_SERIES:
            self._before = sum(row.size or 0 for row in scope.byte_rows(self.path))
            return
        for chunk in scope.read_chunks(self.path):
            self._spool.write(chunk)

    def writable(self) -> bool:
        """Yes."""
        return True

    def seekable(self) -> bool:
        """Not where something is appended."""
        return self.mode != "ab"

    def tell(self) -> int:
        """Where the next byte is written."""
        return self._before + self._spool.tell()

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go somewhere else."""
        if not self.seekable():
            raise io.UnsupportedOperation(f"{self.path} is appended to")
        return self._spool.seek(offset, whence)

    def write(self, data: Any) -> int:
        """Put bytes where the file stands."""
        with memoryview(data) as view:
            return self._spool.write(view.cast("B"))

    def close(self) -> None:
        """Keep what was written, as a new version."""
        if self.closed:
            return
        try:
            super().close()
            if not self._is_discarded:
                self.fs.keep(self.path, self._chunks(), self._kind, is_new=self.mode == "xb")
        finally:
            self._spool.close()

    def _chunks(self) -> Iterator[bytes]:
        self._spool.seek(0)
        while chunk := self._spool.read(CHUNK_BYTES):
            yield chunk

    def commit(self) -> None:
        """A transaction of fsspec ends well: what is still open is closed."""
        self.close()

    def discard(self) -> None:
        """Forget what was written."""
        self._is_discarded = True
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            self.discard()
        self.close()
