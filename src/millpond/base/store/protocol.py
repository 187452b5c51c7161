"""The `Store` protocol: everything Millpond asks of storage, and what it may rely on.

Commit safety rests on one promise: of many `put(path, mode="create")` exactly one wins. The suite
`millpond.testing.store.StoreConformance` checks each promise that is written here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, runtime_checkable

if TYPE_CHECKING:
    import os
    from datetime import datetime

PutMode: TypeAlias = Literal["create", "overwrite"]

Data: TypeAlias = bytes | bytearray | memoryview | Iterable[bytes]
"""What can be put: bytes, or chunks of bytes that need not fit in memory together."""

CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class ObjectMeta:
    """What a store knows about an object without reading it."""

    path: str
    size: int
    modified: datetime
    """In UTC. From `put` to an object store it is this machine's clock: the answer has no time."""
    etag: str | None = None
    """Changes when the object is overwritten; means nothing outside its store."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """In what stores may differ."""

    is_durable: bool
    """An object outlives the process and, once `put` has returned, a loss of power."""
    is_shared: bool
    """Other processes see the same objects."""
    has_flat_names: bool
    """`a` and `a/b` can both be objects; in a directory tree they can't."""


@runtime_checkable
class Store(Protocol):
    """Named objects under one root; every method is safe to call from many threads.

    Paths are relative, use `/`, and are checked by `path.check_path` in every method. Errors are
    `ObjectNotFoundError`, `ObjectExistsError`, `StoreAccessError` and, for the rest, `StoreError`.
    """

    @property
    def url(self) -> str:
        """Where the store is; `open_store(url)` finds it again. Holds no secrets."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """What this store can do beyond the protocol."""
        ...

    def get(self, path: str) -> bytes:
        """The whole object."""
        ...

    def get_range(self, path: str, start: int, length: int) -> bytes:
        """Up to `length` bytes from `start`; fewer, or none, where the object ends before."""
        ...

    def get_stream(self, path: str, *, chunk_bytes: int = CHUNK_BYTES) -> Iterator[bytes]:
        """The object in pieces of about `chunk_bytes`, all of one version; none is empty.

        Nothing happens, and no error is raised, before the first piece is asked for.
        """
        ...

    def put(self, path: str, data: Data, *, mode: PutMode = "create") -> ObjectMeta:
        """Write a whole object: readers see all of it or nothing, whatever happens meanwhile.

        With "create", `ObjectExistsError` says that the name is taken. An object store that loses
        the answer to a put and repeats it can say so to the very writer who won: a writer for
        whom this matters puts something unique into the object and reads it back.

        An exception from the chunks passes through, and nothing is written.
        """
        ...

    def put_file(
        self, path: str, local_file: str | os.PathLike[str], *, mode: PutMode = "create"
    ) -> ObjectMeta:
        """Like `put`, with a local file's bytes, in bounded memory."""
        ...

    def head(self, path: str) -> ObjectMeta:
        """What is known about the object, without reading it."""
        ...

    def list(self, prefix: str = "", *, start_after: str | None = None) -> Iterator[ObjectMeta]:
        """The objects whose path starts with the text `prefix`, at any depth, lazily.

        In the order of the paths' UTF-8 bytes; only those behind `start_after`, which need not
        exist. `prefix="a"` finds `a`, `ab` and `a/b`; `prefix="a/"` finds `a/b` alone.
        """
        ...

    def delete(self, path: str) -> None:
        """Remove the object if it is there.

        Deleting what isn't there is no error: object stores can't tell, and a delete that is
        repeated after a crash must not fail.
        """
        ...

    def touch(self, path: str) -> None:
        """Make the object's time of modification now, where a store can do that cheaply.

        Object stores can't: there the time stays, and nothing is said.
        """
        ...

    def sweep(self, *, before: datetime) -> int:
        """Remove what unfinished puts left before that time, and say how much it was.

        Leftovers are invisible to every other method, so this only saves space.
        """
        ...
