"""Bytes of raw files: small ones live in their row, others under the hash of what they are.

Equal content is stored once. What is read whole is hashed again, so that a flipped bit is found.
"""

from __future__ import annotations

import tempfile
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from blake3 import blake3

from millpond.base.errors import (
    IntegrityError,
    ObjectExistsError,
    ObjectNotFoundError,
    PondError,
    StoreError,
)
from millpond.base.seals import Checks, whole_hash
from millpond.base.store.local import LocalStore
from millpond.fs.edit import Stored

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator

    from millpond.base.store import Data, Store
    from millpond.fs.entry import Row

INLINE_BYTES: Final = 64 * 1024
DIRECTORY: Final = "blobs"
CHUNK_BYTES: Final = 1 << 20
CHECKED_BYTES: Final = 4 << 20
"""Up to so many bytes content in an object store is checked before an engine reads parts of it."""
_CHECKED: Final = Checks()
YOUNG: Final = timedelta(hours=1)
"""A blob of this age is not removed by maintenance, whether something needs it or not."""


def blob_path(digest: str) -> str:
    """Where content with a hash is, in the pond's store."""
    return f"{DIRECTORY}/{digest[:2]}/{digest}"


def digest_of(content: bytes) -> str:
    """The hash of content.

    >>> digest_of(b"")[:16]
    'af1349b9f5f9a1a6'
    """
    return blake3(content).hexdigest()


class Blobs:
    """Content by its hash."""

    def __init__(self, store: Store, *, inline_bytes: int = INLINE_BYTES) -> None:
        self.store = store
        self.inline_bytes = inline_bytes

    def keep(self, data: Data) -> Stored:
        """Put content away; what is long is never in memory as a whole."""
        if isinstance(data, bytes | bytearray | memoryview):
            content = bytes(data)
            if len(content) <= self.inline_bytes:
                return Stored(len(content), digest_of(content), content)
            return self._put(Stored(len(content), digest_of(content)), [content])
        head = bytearray()
        chunks = iter(data)
        for chunk in chunks:
            head += chunk
            if len(head) > self.inline_bytes:
                return self._spool(head, chunks)
        return self.keep(bytes(head))

    def keep_file(
        self, file: str | os.PathLike[str], *, watch: Callable[[int], None] | None = None
    ) -> Stored:
        """Put a file's content away: it is read twice, and never copied in between.

        `watch` is told how many bytes were read, each time.
        """
        with _opened(file) as source:
            head = source.read(self.inline_bytes + 1)
            if len(head) <= self.inline_bytes:
                return self.keep(head)
            hasher, size = blake3(head), len(head)
            for chunk in _pieces(source, watch):
                hasher.update(chunk)
                size += len(chunk)
            source.seek(0)
            stored = Stored(size, hasher.hexdigest())
            pieces = _pieces(source, watch)
            return self._put(stored, self._checked(pieces, stored, name=str(file)))

    def read(self, row: Row, inline: bytes | None, *, path: str) -> Iterator[bytes]:
        """The content of a row in chunks; the last one comes after the hash was checked."""
        if inline is not None:
            _check(digest_of(inline), row, path)
            if inline:
                yield inline
            return
        if row.blake3 is None:
            return
        hasher = blake3()
        held = b""
        try:
            for chunk in self.store.get_stream(blob_path(row.blake3)):
                if held:
                    yield held
                hasher.update(chunk)
                held = chunk
        except ObjectNotFoundError as error:
            raise _gone(row, path, error) from error
        _check(hasher.hexdigest(), row, path)
        if held:
            yield held

    def check(self, row: Row, *, path: str) -> None:
        """Check the content of a row in its place, before an engine reads parts of it.

        In an object store only small content is: it would be fetched twice.
        """
        assert row.blake3 is not None
        name = blob_path(row.blake3)
        if not isinstance(self.store, LocalStore):
            if (row.size or 0) <= CHECKED_BYTES:
                for _ in self.read(row, None, path=path):
                    pass
            return
        try:
            _CHECKED.once(self.store.root / name, lambda file: _check(whole_hash(file), row, path))
        except FileNotFoundError as error:
            raise _gone(row, path, error) from error

    def read_range(self, row: Row, inline: bytes | None, start: int, length: int) -> bytes:
        """Some bytes of a row's content, which are not checked."""
        if inline is not None:
            return inline[start : start + length]
        assert row.blake3 is not None
        return self.store.get_range(blob_path(row.blake3), start, length)

    def _spool(self, head: bytearray, rest: Iterable[bytes]) -> Stored:
        """Chunks by way of a temporary file, since the name comes from the hash of all."""
        hasher, size = blake3(head), len(head)
        with tempfile.TemporaryFile() as spool:
            spool.write(head)
            for chunk in rest:
                hasher.update(chunk)
                size += len(chunk)
                spool.write(chunk)
            spool.seek(0)
            return self._put(
                Stored(size, hasher.hexdigest()), iter(lambda: spool.read(CHUNK_BYTES), b"")
            )

    def _put(self, stored: Stored, chunks: Iterable[bytes]) -> Stored:
        path = blob_path(stored.blake3)
        try:
            known = self.store.head(path)
            if known.size == stored.size and datetime.now(UTC) - known.modified < YOUNG:
                return stored
            # Maintenance may be about to remove it, if nothing needs it: put anew, it is young.
            self.store.put(path, chunks, mode="overwrite")
        except ObjectNotFoundError:
            with suppress(ObjectExistsError):  # somebody put the same meanwhile
                self.store.put(path, chunks)
        return stored

    def _checked(self, pieces: Iterable[bytes], stored: Stored, *, name: str) -> Iterator[bytes]:
        hasher = blake3()
        for chunk in pieces:
            hasher.update(chunk)
            yield chunk
        if hasher.hexdigest() != stored.blake3:
            raise PondError(
                f"{name} was changed while it was copied", hint="copy it when nobody writes to it"
            )


def _opened(file: str | os.PathLike[str]) -> IO[bytes]:
    try:
        return Path(file).open("rb")
    except FileNotFoundError as error:
        raise ObjectNotFoundError(
            f"there is no local file {file}", path=str(file), hint="check the path"
        ) from error
    except OSError as error:
        raise StoreError(
            f"the local file {file} can't be read: {error.strerror}",
            path=str(file),
            hint="check what it is, and who may read it",
        ) from error


def _pieces(source: IO[bytes], watch: Callable[[int], None] | None) -> Iterator[bytes]:
    while chunk := source.read(CHUNK_BYTES):
        yield chunk
        if watch is not None:
            watch(len(chunk))


def _gone(row: Row, path: str, error: FileNotFoundError) -> IntegrityError:
    return IntegrityError(
        f"the content of {path} (version {row.version}) is gone: {error}",
        path=path,
        hint="pond fsck tells what else is damaged; restore it from a backup",
    )


def _check(found: str, row: Row, path: str) -> None:
    if row.blake3 is not None and found != row.blake3:
        raise IntegrityError(
            f"the content of {path} (version {row.version}) is damaged: its hash is "
            f"{found[:16]}…, not {row.blake3[:16]}…",
            path=path,
            hint="pond fsck tells what else is damaged; restore it from a backup",
        )
