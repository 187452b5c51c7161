"""A store in a directory: commits survive a crash, and a half-written object is never seen.

A put writes a temporary file next to its target, syncs it, gives it the final name in one step
(`os.link`, which fails if the name is taken, or `os.replace`) and syncs the directory. A store that
is not `durable` leaves out the syncs: a crash of the process is survived, a loss of power is not.
Files of a `private` one can be read by their owner alone, whatever the umask.
Where a filesystem has no hard links, "create" is refused: every way around them (reserve the name
first, lock files) shows readers an empty object or survives a crash as a lock that nobody holds.

Symbolic links are followed. Files whose names no put accepts are not objects and are not listed.
"""

from __future__ import annotations

import contextlib
import errno
import math
import os
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from millpond.base.errors import ObjectExistsError, ObjectNotFoundError, StoreError
from millpond.base.store.chunks import file_chunks, to_chunks
from millpond.base.store.local_io import Directories, sync_directory, translated, write_all
from millpond.base.store.local_walk import remove_empty_directories, walk
from millpond.base.store.path import TEMP_PREFIX, check_path, check_prefix
from millpond.base.store.protocol import (
    CHUNK_BYTES,
    Capabilities,
    Data,
    ObjectMeta,
    PutMode,
)
from millpond.base.store.ranges import check_range

if TYPE_CHECKING:
    from collections.abc import Iterator

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EXDEV)


class LocalStore:
    """Objects as files under a directory, which is made by the first put."""

    def __init__(
        self, root: str | os.PathLike[str], *, durable: bool = True, private: bool = False
    ) -> None:
        self._root = Path(root).expanduser().absolute()
        self._is_durable = durable
        self._file_mode = 0o600 if private else 0o666
        self._directories = Directories(self._root, durable=durable)
        with translated("", root=self._root):
            is_taken = self._root.exists() and not self._root.is_dir()
        if is_taken:
            raise StoreError(
                f"{self._root} is not a directory",
                path=str(self._root),
                hint="a local store is a directory, or a path that is still free",
            )

    @property
    def root(self) -> Path:
        """The directory, absolute."""
        return self._root

    @property
    def url(self) -> str:
        """The directory as `file://`."""
        return self._root.as_uri()

    @property
    def capabilities(self) -> Capabilities:
        """Durable unless told otherwise, and shared; names form a tree."""
        return Capabilities(is_durable=self._is_durable, is_shared=True, has_flat_names=False)

    def __repr__(self) -> str:
        return f"LocalStore({str(self._root)!r})"

    def get(self, path: str) -> bytes:
        """The whole object."""
        with translated(path, root=self._root), self._file(path).open("rb") as file:
            return file.read()

    def get_range(self, path: str, start: int, length: int) -> bytes:
        """Up to `length` bytes from `start`."""
        check_range(path, start, length)
        with translated(path, root=self._root), self._file(path).open("rb") as file:
            # No more is asked for than is there: a huge `length` must not become a huge buffer.
            left = max(0, os.fstat(file.fileno()).st_size - start)
            file.seek(start if left else 0)
            return file.read(min(length, left))

    def get_stream(self, path: str, *, chunk_bytes: int = CHUNK_BYTES) -> Iterator[bytes]:
        """The object in pieces; an overwrite meanwhile does not change what is read."""
        with translated(path, root=self._root):
            file = self._file(path).open("rb")
        with file:
            while chunk := file.read(chunk_bytes):
                yield chunk

    def put(self, path: str, data: Data, *, mode: PutMode = "create") -> ObjectMeta:
        """Write a whole object, durably where that is wanted."""
        target = self._file(path)
        with translated(path, root=self._root):
            # Costs one look, and saves writing what will be refused; the link below decides.
            if mode == "create" and target.exists():
                raise _taken(path, target)
            temp = self._new_temp(target)
        try:
            write_all(temp, to_chunks(data), path=path, root=self._root, durable=self._is_durable)
            with translated(path, root=self._root):
                # Asked before the file has its final name, where others could replace it.
                meta = _meta(path, temp.stat())
                if mode == "create":
                    _link(temp, target, path=path)
                else:
                    _replace(temp, target, path=path)
        finally:
            # After a replace it is gone; if it can't be removed, `sweep` will.
            with contextlib.suppress(OSError):
                temp.unlink()
        if self._is_durable:
            with translated(path, root=self._root):
                sync_directory(target.parent)
        return meta

    def put_file(
        self, path: str, local_file: str | os.PathLike[str], *, mode: PutMode = "create"
    ) -> ObjectMeta:
        """Like `put`, with a local file's bytes."""
        return self.put(path, file_chunks(local_file), mode=mode)

    def head(self, path: str) -> ObjectMeta:
        """What is known about the object."""
        with translated(path, root=self._root):
            status = os.stat(f"{self._root}/{check_path(path)}")  # noqa: PTH116 - asked very often
        if not stat.S_ISREG(status.st_mode):
            raise ObjectNotFoundError(f"{path!r} in {self.url} is no object", path=path)
        return _meta(path, status)

    def list(self, prefix: str = "", *, start_after: str | None = None) -> Iterator[ObjectMeta]:
        """The objects whose path starts with `prefix`, behind `start_after`, in order."""
        check_prefix(prefix)
        if start_after is not None:
            check_prefix(start_after)
        for path, entry in walk(self._root, prefix=prefix, start_after=start_after):
            # Between the look into the directory and this one the object can be deleted.
            with contextlib.suppress(FileNotFoundError):
                yield _meta(path, entry.stat())

    def delete(self, path: str) -> None:
        """Remove the object if it is there; directories stay."""
        file = self._file(path)
        try:
            with translated(path, root=self._root):
                if file.is_dir():
                    return
                file.unlink()
                if self._is_durable:
                    sync_directory(file.parent)
        except ObjectNotFoundError:
            return

    def touch(self, path: str) -> None:
        """Make its time of modification now."""
        with translated(path, root=self._root):
            os.utime(self._file(path))

    def sweep(self, *, before: datetime) -> int:
        """Remove temporary files and empty directories that were last changed before that time.

        Return the number of files. Directories stay for another minute: a put makes them first, and
        then its file.
        """
        removed = 0
        for path, entry in walk(self._root, leftovers=True):
            with contextlib.suppress(FileNotFoundError):
                if _meta(path, entry.stat()).modified < before:
                    Path(entry.path).unlink()
                    removed += 1
        remove_empty_directories(self._root, before=before.timestamp() - 60)
        return removed

    def remove_directories(self) -> None:
        """Remove the store's directory, and those below it, as far as they hold nothing."""
        remove_empty_directories(self._root, before=math.inf)
        with contextlib.suppress(OSError):  # it holds something, or is not there
            self._root.rmdir()

    def _file(self, path: str) -> Path:
        return self._root.joinpath(*check_path(path).split("/"))

    def _new_temp(self, target: Path) -> Path:
        """An empty file with a name of its own, in the target's directory."""
        for attempt in range(3):
            temp = target.parent / f"{TEMP_PREFIX}{os.urandom(12).hex()}"
            try:
                self._directories.make(target.parent)
                os.close(os.open(temp, os.O_CREAT | os.O_EXCL | os.O_WRONLY, self._file_mode))
            except FileNotFoundError:
                # Somebody removed the directory, or one above it, since we made it.
                self._directories.forget()
                if attempt == 2:
                    raise
            else:
                return temp
        raise AssertionError("unreachable")


def _link(temp: Path, target: Path, *, path: str) -> None:
    try:
        os.link(temp, target)
    except FileExistsError:
        # Over NFS the answer to a link that worked can be lost, and the repeated one then fails:
        # a second name of our own file says that we won.
        if temp.stat().st_nlink != 2:
            raise _taken(path, target) from None
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        raise StoreError(
            f"{path!r} can't be created: the filesystem of {target.parent} has no hard links",
            path=path,
            hint="put the pond on a filesystem with hard links, or into an object store",
        ) from error


def _replace(temp: Path, target: Path, *, path: str) -> None:
    if target.is_dir():
        raise _taken(path, target)
    temp.replace(target)


def _taken(path: str, target: Path) -> StoreError:
    if target.is_dir():
        return StoreError(f"{path!r} is a directory and can't be an object too", path=path)
    return ObjectExistsError(f"{path!r} is already there", path=path)


def _meta(path: str, status: os.stat_result) -> ObjectMeta:
    return ObjectMeta(
        path=path,
        size=status.st_size,
        modified=_EPOCH + timedelta(microseconds=status.st_mtime_ns // 1000),
        etag=f"{status.st_ino:x}-{status.st_mtime_ns:x}-{status.st_size:x}",
    )
