"""Python streams that native code reads in threads of its own.

A CSV reader of pyarrow reads ahead in a thread that may be the last to let go of the stream, some
time after an error was raised. For that it needs the interpreter, and if the interpreter ends just
then, the process is aborted. So whoever lends a stream waits until it is free again.
"""

from __future__ import annotations

import logging
import weakref
from threading import Event
from typing import IO, TYPE_CHECKING, Any, Final

import pyarrow as pa

if TYPE_CHECKING:
    from types import TracebackType

PATIENCE_S: Final = 5.0
_log = logging.getLogger("millpond.engine")


class Lent:
    """A stream on loan: `with Lent(stream) as lent: reader = open_csv(lent.file)`.

    References to readers have to be dropped before the end of the block, which waits for those
    that native code holds.

    >>> import io
    >>> with Lent(io.BytesIO(b"a")) as lent:
    ...     lent.file.read(1)
    b'a'
    """

    def __init__(self, stream: IO[bytes] | pa.NativeFile) -> None:
        self._free = Event()
        self._file: pa.NativeFile | None
        if isinstance(stream, pa.NativeFile) and not isinstance(stream, pa.PythonFile):
            self._file = stream
            self._free.set()
        else:
            door = _Door(stream)
            weakref.finalize(door, self._free.set).atexit = False
            self._file = pa.PythonFile(door, mode="r")

    @property
    def file(self) -> pa.NativeFile:
        """The stream as native code takes it; keep no reference to it."""
        assert self._file is not None
        return self._file

    def __enter__(self) -> Lent:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file = None
        if not self._free.wait(PATIENCE_S):
            _log.warning("a stream is still read by native code after %g s", PATIENCE_S)


class _Door:
    """What native code holds: nothing but that refers to it, so its end is the end of the loan."""

    closed = False

    def __init__(self, stream: Any) -> None:
        # Not a method: an error that it raises would hold its frame, and so this object.
        self.read = stream.read

    def readable(self) -> bool:
        """It is for reading."""
        return True

    def close(self) -> None:
        """Leave the stream open: it is the lender's."""
