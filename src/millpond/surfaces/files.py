"""Files of `pond://` in the hand: one to read, and one that becomes a version when it is closed."""

from __future__ import annotations

import io
import tempfile
from typing import TYPE_CHECKING, Any, Final, Self

from millpond.base.errors import PathExistsError, PathTypeError, WriteConflictError
from millpond.fs.entry import EntryType
from millpond.steward.bytefile import BLOCK_BYTES, open_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from millpond.fs.entry import Row
    from millpond.steward.scope import Scope
    from millpond.surfaces.fsspec import PondFileSystem

IN_MEMORY: Final = 8 << 20
CHUNK_BYTES: Final = 1 << 20


def open_to_read(scope: Scope, path: str, block_bytes: int | None) -> io.BufferedReader:
    """The bytes of a node; the rows of a table, a series or a collection as a file of Parquet."""
    if not scope.row(path).entry_type.is_table:
        return open_bytes(scope, path, block_bytes=block_bytes or BLOCK_BYTES)
    from millpond.steward.rows.files import write_rows

    file = _Spool()
    plan = scope.plan(path)
    write_rows("parquet", file.spool, plan.execute(engine=scope.pond.engine_for(plan)))
    file.seek(0)
    return io.BufferedReader(file)


class _Spool(io.RawIOBase):
    """A temporary file, which is gone once nobody has it in the hand any more."""

    def __init__(self) -> None:
        self.spool = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115

    def seekable(self) -> bool:
        """Yes."""
        return True

    def readable(self) -> bool:
        """Yes."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Some bytes."""
        found = self.spool.read(len(buffer))
        buffer[: len(found)] = found
        return len(found)

    def readall(self) -> bytes:
        """The rest."""
        return self.spool.read()

    def tell(self) -> int:
        """Where the file stands."""
        return self.spool.tell()

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go somewhere else."""
        return self.spool.seek(offset, whence)

    def close(self) -> None:
        """Forget it."""
        super().close()
        self.spool.close()


class NewFile(_Spool):
    """A file that is written: it waits on this machine, and is kept when it is closed.

    In a transaction it is seen once that is committed. If a `with` block around it fails, nothing
    is kept.
    """

    def __init__(self, fs: PondFileSystem, path: str, mode: str) -> None:
        super().__init__()
        self.fs = fs
        self.path = path
        self.mode = mode
        self.kind = EntryType.DATA
        self._is_discarded = True
        self._before = 0
        """Bytes that are there already, and are not written again."""
        self._continued: Row | None = None
        """The version to which this one adds something."""
        with fs.session.pin() as scope:
            self.check_place(scope)
            if scope.exists(path):
                self.kind = scope.stat(path).entry_type
                self._go_on(scope)
        self._is_discarded = False

    def check_place(self, scope: Scope) -> None:
        """Whether the file can be written: when it is opened, and again when it is kept."""
        if not scope.exists(self.path):
            return
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
        if self._continued is not None and scope.row(self.path) != self._continued:
            raise WriteConflictError(
                f"{self.path} was written meanwhile, and what was appended would not go behind it",
                path=self.path,
                hint="append to it again; a data:series takes what many writers append",
            )

    def _go_on(self, scope: Scope) -> None:
        if self.mode != "ab":
            return
        if self.kind is EntryType.DATA_SERIES:
            self._before = sum(row.size or 0 for row in scope.byte_rows(self.path))
            return
        for chunk in scope.read_chunks(self.path):
            self.spool.write(chunk)
        self._continued = scope.row(self.path)

    def writable(self) -> bool:
        """Yes."""
        return True

    def readable(self) -> bool:
        """No."""
        return False

    def seekable(self) -> bool:
        """Not where something is appended."""
        return self.mode != "ab"

    def tell(self) -> int:
        """Where the next byte is written."""
        return self._before + super().tell()

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go somewhere else."""
        if not self.seekable():
            raise io.UnsupportedOperation(f"{self.path} is appended to")
        return super().seek(offset, whence)

    def write(self, data: Any) -> int:
        """Put bytes where the file stands."""
        with memoryview(data) as view:
            return self.spool.write(view.cast("B"))

    def chunks(self) -> Iterator[bytes]:
        """All that was written."""
        self.spool.seek(0)
        while chunk := self.spool.read(CHUNK_BYTES):
            yield chunk

    def close(self) -> None:
        """Keep what was written, as a new version."""
        if self.closed:
            return
        is_discarded, self._is_discarded = self._is_discarded, True
        try:
            if not is_discarded:
                self.fs.keep(self)
        finally:
            super().close()

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
