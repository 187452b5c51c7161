"""A store in this process's memory: for tests, and the model that other stores are held to."""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from copy import copy
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from millpond.base.clock import Clock, SystemClock
from millpond.base.errors import ObjectExistsError, ObjectNotFoundError
from millpond.base.store.chunks import file_chunks, to_chunks
from millpond.base.store.path import check_path, check_prefix
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


class _Object(NamedTuple):
    data: bytes
    meta: ObjectMeta


class MemoryStore:
    """Objects in a dictionary.

    >>> store = MemoryStore()
    >>> store.put("a/b", b"hello").size
    5
    >>> store.get_range("a/b", 3, 100), [meta.path for meta in store.list("a/")]
    (b'lo', ['a/b'])
    """

    _named: ClassVar[dict[str, MemoryStore]] = {}
    _named_lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, *, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._objects: dict[str, _Object] = {}
        self._puts = count(1)
        self._lock = threading.Lock()
        self._url = "memory://"
        self._prefix = ""

    @classmethod
    def named(cls, name: str) -> MemoryStore:
        """The store that this process knows by a name; it lives as long as the process.

        `name/a/b` is what lies below `a/b` in it.
        """
        root, _, folder = name.strip("/").partition("/")
        with cls._named_lock:
            if root not in cls._named:
                store = cls._named[root] = cls()
                store._url = f"memory://{root}"
            found = cls._named[root]
        return found.below(folder) if folder else found

    def below(self, folder: str) -> MemoryStore:
        """The same objects, as far as they lie in a directory."""
        found = copy(self)
        prefix = f"{self._prefix}{check_path(folder)}/"
        vars(found).update(_url=f"{self._url}/{folder}", _prefix=prefix)
        return found

    @property
    def url(self) -> str:
        """`memory://`, with the name if it has one."""
        return self._url

    @property
    def capabilities(self) -> Capabilities:
        """Neither durable nor shared."""
        return Capabilities(is_durable=False, is_shared=False, has_flat_names=True)

    def __repr__(self) -> str:
        return f"MemoryStore({self._url!r})"

    def get(self, path: str) -> bytes:
        """The whole object."""
        return self._find(path).data

    def get_range(self, path: str, start: int, length: int) -> bytes:
        """Up to `length` bytes from `start`."""
        check_range(path, start, length)
        return self._find(path).data[start : start + length]

    def get_stream(self, path: str, *, chunk_bytes: int = CHUNK_BYTES) -> Iterator[bytes]:
        """The object in pieces."""
        data = self._find(path).data
        for start in range(0, len(data), chunk_bytes):
            yield data[start : start + chunk_bytes]

    def put(self, path: str, data: Data, *, mode: PutMode = "create") -> ObjectMeta:
        """Write a whole object."""
        key = self._prefix + check_path(path)
        content = b"".join(to_chunks(data))
        with self._lock:
            if mode == "create" and key in self._objects:
                raise ObjectExistsError(f"{path!r} is already there", path=path)
            etag = str(next(self._puts))
            meta = ObjectMeta(key, len(content), self._clock.now(), etag=etag)
            self._objects[key] = _Object(content, meta)
        return replace(meta, path=path)

    def put_file(
        self, path: str, local_file: str | os.PathLike[str], *, mode: PutMode = "create"
    ) -> ObjectMeta:
        """Like `put`, with a local file's bytes."""
        return self.put(path, file_chunks(local_file), mode=mode)

    def head(self, path: str) -> ObjectMeta:
        """What is known about the object."""
        return replace(self._find(path).meta, path=path)

    def list(self, prefix: str = "", *, start_after: str | None = None) -> Iterator[ObjectMeta]:
        """The objects whose path starts with `prefix`, behind `start_after`, in order."""
        first = f"{self._prefix}{check_prefix(prefix)}".encode()
        behind = None
        if start_after is not None:
            behind = f"{self._prefix}{check_prefix(start_after)}".encode()
        with self._lock:
            # Code points of valid text sort as their UTF-8 bytes do.
            objects = sorted(self._objects.items())
        keys = [path.encode() for path, _ in objects]
        start = bisect_left(keys, first)
        if behind is not None:
            start = max(start, bisect_right(keys, behind))
        for key, (_, item) in zip(keys[start:], objects[start:], strict=True):
            if not key.startswith(first):
                return
            yield replace(item.meta, path=item.meta.path[len(self._prefix) :])

    def delete(self, path: str) -> None:
        """Remove the object if it is there."""
        key = self._prefix + check_path(path)
        with self._lock:
            self._objects.pop(key, None)

    def touch(self, path: str) -> None:
        """Make its time of modification now."""
        with self._lock:
            found = self._find(path)
            meta = replace(found.meta, modified=self._clock.now())
            self._objects[self._prefix + path] = found._replace(meta=meta)

    def sweep(self, *, before: datetime) -> int:  # noqa: ARG002
        """Nothing is ever left over in memory."""
        return 0

    def _find(self, path: str) -> _Object:
        found = self._objects.get(self._prefix + check_path(path))
        if found is None:
            raise ObjectNotFoundError(f"there is no object {path!r} in {self.url}", path=path)
        return found
