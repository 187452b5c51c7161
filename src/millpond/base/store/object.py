"""A store in S3, or in another object store that obstore speaks to.

"create" is a conditional put (`If-None-Match: *`), decided by the server. A conditional put can't
be cut into parts, so what is too large for one request is uploaded under a temporary name and
copied by the server, on the same condition. Nothing is ever held in memory as a whole.

`object_errors` translates errors, `open` decides which URLs come here.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC
from itertools import chain
from os import urandom
from typing import TYPE_CHECKING

import obstore

from millpond.base.clock import Clock, SystemClock
from millpond.base.errors import ObjectExistsError, ObjectNotFoundError, StoreError
from millpond.base.store.chunks import file_chunks, to_chunks
from millpond.base.store.object_errors import translated
from millpond.base.store.path import TEMP_PREFIX, check_path, check_prefix, is_leftover, is_path
from millpond.base.store.protocol import (
    CHUNK_BYTES,
    Capabilities,
    Data,
    ObjectMeta,
    PutMode,
)
from millpond.base.store.ranges import check_range

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator
    from datetime import datetime

    from obstore import ObjectMeta as RawMeta
    from obstore.store import ObjectStore as RawStore

_SINGLE_PUT_BYTES = 8 << 20
_PART_BYTES = 8 << 20
_PARTS_AT_ONCE = 4
_LIST_ROWS = 1000
_LAST_CHARACTER = "\U0010ffff"


class ObjectStore:
    """Objects under a bucket's prefix; made by `open_store`."""

    def __init__(self, raw: RawStore, *, url: str, clock: Clock | None = None) -> None:
        self._raw = raw
        self._url = url.rstrip("/")
        self._clock = clock or SystemClock()

    @property
    def url(self) -> str:
        """Scheme, bucket and prefix."""
        return self._url

    @property
    def capabilities(self) -> Capabilities:
        """Durable and shared; names are only names."""
        return Capabilities(is_durable=True, is_shared=True, has_flat_names=True)

    def __repr__(self) -> str:
        return f"ObjectStore({self._url!r})"

    def get(self, path: str) -> bytes:
        """The whole object."""
        check_path(path)
        with translated(path, url=self._url):
            return obstore.get(self._raw, path).bytes().to_bytes()

    def get_range(self, path: str, start: int, length: int) -> bytes:
        """Up to `length` bytes from `start`."""
        check_path(path)
        check_range(path, start, length)
        if length == 0:
            self.head(path)
            return b""
        try:
            with translated(path, url=self._url):
                return obstore.get_range(self._raw, path, start=start, length=length).to_bytes()
        except ObjectNotFoundError:
            raise
        except StoreError:
            # A start behind the end is an error for HTTP, and an empty answer for us.
            if start >= self.head(path).size:
                return b""
            raise

    def get_stream(self, path: str, *, chunk_bytes: int = CHUNK_BYTES) -> Iterator[bytes]:
        """The object in pieces, from one request."""
        check_path(path)
        with translated(path, url=self._url):
            stream = iter(obstore.get(self._raw, path).stream(min_chunk_size=chunk_bytes))
        while True:
            with translated(path, url=self._url):
                chunk = next(stream, None)
            if chunk is None:
                return
            if piece := bytes(chunk):
                yield piece

    def put(self, path: str, data: Data, *, mode: PutMode = "create") -> ObjectMeta:
        """Write a whole object."""
        check_path(path)
        source = _Source(data)
        if source.is_small:
            with translated(path, url=self._url):
                result = obstore.put(self._raw, path, source.head, mode=mode, use_multipart=False)
            etag = result["e_tag"]
        elif mode == "overwrite":
            etag = self._upload(path, source)
        else:
            etag = self._create_large(path, source)
        return ObjectMeta(path, source.size, self._clock.now(), etag=etag)

    def put_file(
        self, path: str, local_file: str | os.PathLike[str], *, mode: PutMode = "create"
    ) -> ObjectMeta:
        """Like `put`, with a local file's bytes."""
        return self.put(path, file_chunks(local_file), mode=mode)

    def head(self, path: str) -> ObjectMeta:
        """What is known about the object."""
        check_path(path)
        with translated(path, url=self._url):
            return _meta(obstore.head(self._raw, path))

    def list(self, prefix: str = "", *, start_after: str | None = None) -> Iterator[ObjectMeta]:
        """The objects whose path starts with `prefix`, behind `start_after`, in order."""
        first, behind = check_prefix(prefix).encode(), check_prefix(start_after or "").encode()
        last = b""
        for meta in self._pages(prefix, offset=max(start_after or "", _just_before(prefix))):
            key = meta.path.encode()
            if meta.size == 0 and self._is_marker(meta.path, is_early=key <= last):
                continue
            if key <= last:
                raise StoreError(
                    f"{self._url} does not list in the order of names",
                    path=prefix,
                    hint="S3 directory buckets do this; use a general purpose bucket",
                )
            last = key
            if key > first and not key.startswith(first):
                return
            if key > behind and key.startswith(first) and is_path(meta.path):
                yield meta

    def delete(self, path: str) -> None:
        """Remove the object if it is there."""
        check_path(path)
        with suppress(ObjectNotFoundError), translated(path, url=self._url):
            obstore.delete(self._raw, path)

    def touch(self, path: str) -> None:
        """The time of an object is that of its last put: nothing is changed."""
        self.head(path)

    def sweep(self, *, before: datetime) -> int:
        """Remove temporary objects that are older than that time."""
        old = [m.path for m in self._pages("") if is_leftover(m.path) and m.modified < before]
        for path in old:
            with suppress(ObjectNotFoundError), translated(path, url=self._url):
                obstore.delete(self._raw, path)
        return len(old)

    def _pages(self, prefix: str, *, offset: str = "") -> Iterator[ObjectMeta]:
        directory = prefix.rpartition("/")[0]
        with translated(prefix, url=self._url):
            pages = iter(
                obstore.list(
                    self._raw, directory or None, offset=offset or None, chunk_size=_LIST_ROWS
                )
            )
        while True:
            with translated(prefix, url=self._url):
                page = next(pages, None)
            if page is None:
                return
            yield from map(_meta, page)

    def _is_marker(self, path: str, *, is_early: bool) -> bool:
        """Whether what was listed is no object, but an empty one that makes a "folder" visible.

        Its name ends with `/`, which obstore leaves out. So it may be listed behind what its name
        without the `/` would come before, or be that of the store's own root.
        """
        if not path or is_early:
            return True
        try:
            self.head(path)
        except ObjectNotFoundError:
            return True
        return False

    def _upload(self, path: str, source: _Source) -> str | None:
        """Upload in parts; the object appears when the last one has arrived."""
        try:
            with translated(path, url=self._url):
                result = obstore.put(
                    self._raw,
                    path,
                    source.chunks(),
                    use_multipart=True,
                    chunk_size=_PART_BYTES,
                    max_concurrency=_PARTS_AT_ONCE,
                )
        except Exception:
            if source.error is not None:
                raise source.error from None
            raise
        return result["e_tag"]

    def _create_large(self, path: str, source: _Source) -> str | None:
        # Costs one question, and saves uploading what will be refused; the copy decides.
        with suppress(ObjectNotFoundError):
            self.head(path)
            raise ObjectExistsError(f"{path!r} is already in {self._url}", path=path)
        directory, slash, _ = path.rpartition("/")
        temp = f"{directory}{slash}{TEMP_PREFIX}{urandom(12).hex()}"
        self._upload(temp, source)
        try:
            with translated(path, url=self._url):
                obstore.copy(self._raw, temp, path, overwrite=False)
        finally:
            # If it can't be removed, `sweep` will.
            with suppress(StoreError), translated(temp, url=self._url):
                obstore.delete(self._raw, temp)
        return self.head(path).etag


class _Source:
    """Data for one put: its start in memory, the rest on demand, counted as it passes."""

    def __init__(self, data: Data) -> None:
        self._rest = to_chunks(data)
        self.error: Exception | None = None
        taken, size = [], 0
        for chunk in self._rest:
            taken.append(chunk)
            size += len(chunk)
            if size > _SINGLE_PUT_BYTES:
                break
        self.is_small = size <= _SINGLE_PUT_BYTES
        self.size = size if self.is_small else 0
        self._taken = taken

    @property
    def head(self) -> bytes:
        """All of it, if it is small."""
        return b"".join(self._taken)

    def chunks(self) -> Iterator[bytes | bytearray | memoryview]:
        """All of it, in pieces that are not empty; remembers an error of the chunks' maker."""
        try:
            for chunk in chain(self._taken, self._rest):
                for start in range(0, len(chunk), _PART_BYTES):
                    piece = chunk[start : start + _PART_BYTES]
                    self.size += len(piece)
                    yield piece
        except Exception as error:
            self.error = error
            raise


def _just_before(prefix: str) -> str:
    """A text behind which all paths with this prefix lie, and few others.

    >>> _just_before("log/0001") == "log/0000" + _LAST_CHARACTER
    True
    >>> _just_before("log/"), _just_before("a!")
    ('', 'a')
    """
    tail = prefix.rpartition("/")[2]
    if not tail:
        return ""
    before = ord(tail[-1]) - 1
    # Control characters and surrogates can't be asked for.
    if before <= 0x20 or 0xD800 <= before <= 0xDFFF:
        return prefix[:-1].rstrip("/")
    return prefix[:-1] + chr(before) + _LAST_CHARACTER


def _meta(raw: RawMeta) -> ObjectMeta:
    return ObjectMeta(
        path=raw["path"],
        size=raw["size"],
        modified=raw["last_modified"].astimezone(UTC),
        etag=raw["e_tag"],
    )
