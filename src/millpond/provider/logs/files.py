"""Log files of this machine: which there are, what is in them, and how much of that is known.

Bytes are hashed from the beginning on, so a file is known by what it begins with, whatever its
name is by now. Archived files may be packed by gzip, bzip2 or xz; what counts is inside.
"""

from __future__ import annotations

import glob
import lzma
import os
import zlib
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple

from blake3 import blake3

from millpond.base.errors import PondError, StoreError
from millpond.engine.arrow.source.unpacked import content_of
from millpond.fs.glob import Pattern

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

CHUNK_BYTES: Final = 1 << 20
_PACKED: Final = {
    b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\xfd7zXZ\x00": "lzma", b"\x28\xb5\x2f\xfd": "zstd"
}  # fmt: skip
_INCOMPLETE: Final = (EOFError, OSError, zlib.error, lzma.LZMAError)


class End(NamedTuple):
    """So many bytes from the beginning of a file, and their hash."""

    size: int
    blake3: str


@dataclass(frozen=True, slots=True)
class LogFile:
    """A file that was found."""

    path: str
    captures: tuple[str, ...]
    is_active: bool
    inode: int
    size: int
    mtime: int

    @property
    def mark(self) -> list[int]:
        """What tells that it has not changed: an archived one with a known mark is not read."""
        return [self.inode, self.size, self.mtime]


@dataclass(frozen=True, slots=True)
class Look:
    """A file that was read."""

    file: LogFile
    end: End
    start: int
    """How many of its bytes are known."""
    hasher: Any = field(repr=False)
    """The hash of those, to go on from."""
    hashes: Mapping[int, str]
    """Of its beginnings, by their lengths."""

    def begins_with(self, end: End | None) -> bool:
        """Whether it begins with these bytes."""
        return end is not None and self.hashes.get(end.size) == end.blake3


class IncompleteError(Exception):
    """A packed file that ends too early: somebody is still writing it, or it is damaged."""


def find(pattern: str, *, is_active: bool = False) -> list[LogFile]:
    """The files that a pattern names, oldest first."""
    parsed, found = Pattern.parse(pattern), []
    for path in glob.glob(pattern, recursive=True, include_hidden=True):  # noqa: PTH207 - as it is
        captures = parsed.match(path)
        try:
            stat = Path(path).stat()
        except FileNotFoundError:  # rotated away meanwhile: its new name is found, or the next time
            continue
        if captures is not None and Path(path).is_file():
            facts = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
            found.append(LogFile(path, captures, is_active, *facts))
    return sorted(found, key=lambda file: (file.mtime, file.path))


def look(file: LogFile, known: Collection[End], sizes: Collection[int] = ()) -> Look:
    """Read a file: the longest of the known ends that it goes through, and hashes at sizes."""
    hasher, hashes, at = blake3(), dict[int, str](), 0
    start, at_start = 0, blake3()
    with _content(file) as source:
        for stop in sorted({*sizes, *(end.size for end in known)}):
            at += _hash(source, hasher, stop - at)
            if at < stop:
                break
            hashes[stop] = hasher.hexdigest()
            if End(stop, hashes[stop]) in known:
                start, at_start = stop, hasher.copy()
        at += _hash(source, hasher, None)
    hashes[at] = hasher.hexdigest()
    return Look(file, End(at, hashes[at]), start, at_start, hashes)


def _hash(source: IO[bytes], hasher: Any, count: int | None) -> int:
    """Hash so many bytes, or all that are left; how many there were."""
    done = 0
    while count is None or done < count:
        wanted = CHUNK_BYTES if count is None else min(CHUNK_BYTES, count - done)
        chunk = source.read(wanted)
        if not chunk:
            break
        hasher.update(chunk)
        done += len(chunk)
    return done


def new_bytes(seen: Look) -> Iterator[bytes]:
    """What is not known of a file; an error if it is not what it was when it was looked at."""
    hasher, left = seen.hasher.copy(), seen.end.size - seen.start
    with _content(seen.file) as source:
        _skip(source, seen.start)
        while left and (chunk := source.read(min(CHUNK_BYTES, left))):
            hasher.update(chunk)
            left -= len(chunk)
            yield chunk
    if left or hasher.hexdigest() != seen.end.blake3:
        raise _changed(seen.file.path)


def _skip(source: IO[bytes], count: int) -> None:
    if source.seekable():
        source.seek(count)
        return
    _hash(source, blake3(), count)


@contextmanager
def _content(file: LogFile) -> Iterator[IO[bytes]]:
    """The bytes of a file, unpacked, and no more than it had when it was found."""
    with _opened(file.path) as raw:
        if os.fstat(raw.fileno()).st_ino != file.inode:
            raise _changed(file.path)
        packed = None if file.is_active else _packed(raw, file.path)
        if packed is None:
            yield _Limited(raw, file.size)  # type: ignore[misc]
            return
        try:
            with packed:
                yield packed
        except _INCOMPLETE as error:
            if isinstance(error, PondError | StoreError):
                raise
            raise IncompleteError(f"{error}") from error


def _opened(path: str) -> IO[bytes]:
    try:
        return Path(path).open("rb")
    except FileNotFoundError as error:
        raise _changed(path) from error
    except OSError as error:
        raise StoreError(
            f"the log file {path} can't be read: {error.strerror}",
            path=path,
            hint="check who may read it",
        ) from error


class _Limited:
    """The first bytes of a file that somebody may be writing to."""

    def __init__(self, raw: IO[bytes], size: int) -> None:
        self._raw = raw
        self._size = size

    def seekable(self) -> bool:
        return True

    def seek(self, position: int) -> int:
        return self._raw.seek(position)

    def read(self, count: int) -> bytes:
        return self._raw.read(max(0, min(count, self._size - self._raw.tell())))


def _packed(raw: IO[bytes], path: str) -> IO[bytes] | None:
    import bz2
    import gzip

    head = raw.read(6)
    raw.seek(0)
    kind = next((kind for magic, kind in _PACKED.items() if head.startswith(magic)), None)
    if kind == "zstd":
        raise StoreError(
            f"{path} is packed by zstd, which log-ingest can't look into",
            path=path,
            hint="unpack it, or have archived_pattern leave it out",
        )
    if kind is None:
        return None
    opened: Any = {"gzip": gzip.open, "bz2": bz2.open, "lzma": lzma.open}[kind](raw)  # type: ignore[operator]
    return content_of(opened, path, os.fstat(raw.fileno()).st_size)


def _changed(path: str) -> PondError:
    return PondError(
        f"{path} was rotated or changed while it was read; nothing was kept", hint="run it again"
    )
