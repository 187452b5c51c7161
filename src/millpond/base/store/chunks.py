"""Data on its way into a store, always as chunks, so that size never decides about memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from millpond.base.errors import ObjectNotFoundError, StoreError
from millpond.base.store.protocol import CHUNK_BYTES

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from millpond.base.store.protocol import Data


def to_chunks(data: Data) -> Iterator[bytes | bytearray | memoryview]:
    """The data in one or more pieces, without copying any.

    >>> [bytes(c) for c in to_chunks(b"abc")], list(to_chunks(iter([b"a", b"b"])))
    ([b'abc'], [b'a', b'b'])
    """
    if isinstance(data, bytes | bytearray | memoryview):
        yield memoryview(data).cast("B")
        return
    yield from data


def file_chunks(path: str | os.PathLike[str]) -> Iterator[bytes]:
    """A local file's bytes; a file that can't be read is an error of the file, by its name."""
    try:
        with Path(path).open("rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                yield chunk
    except FileNotFoundError as error:
        raise ObjectNotFoundError(f"there is no local file {path}", path=str(path)) from error
    except OSError as error:
        raise StoreError(
            f"the local file {path} can't be read: {error.strerror}", path=str(path)
        ) from error
