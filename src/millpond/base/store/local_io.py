"""The system calls behind a durable put: what is synced, in which order, and how it can fail."""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from typing import TYPE_CHECKING

from millpond.base.errors import (
    MillpondError,
    ObjectNotFoundError,
    StoreAccessError,
    StoreError,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path


@contextlib.contextmanager
def translated(path: str, *, root: Path) -> Iterator[None]:
    """Turn the system's errors into those of the store."""
    try:
        yield
    except MillpondError:
        raise
    except (FileNotFoundError, IsADirectoryError) as error:
        raise ObjectNotFoundError(f"there is no object {path!r} in {root}", path=path) from error
    except NotADirectoryError as error:
        raise ObjectNotFoundError(
            f"there is no object {path!r} in {root}: a part of the path is an object itself",
            path=path,
        ) from error
    except PermissionError as error:
        raise StoreAccessError(
            f"no access to {path!r} in {root}: {error.strerror}",
            path=path,
            hint="check the owner and the mode of the file and its directories",
        ) from error
    except OSError as error:
        if error.errno == errno.EROFS:
            raise StoreAccessError(
                f"no access to {path!r} in {root}: {error.strerror}",
                path=path,
                hint="it is mounted for reading alone",
            ) from error
        hint = "free some space and try again" if error.errno == errno.ENOSPC else None
        raise StoreError(
            f"{path!r} in {root} failed: {error.strerror or error}", path=path, hint=hint
        ) from error


class Directories:
    """Makes directories below a root, if wanted so that they survive a crash; remembers which."""

    def __init__(self, root: Path, *, durable: bool) -> None:
        self._root = root
        self._is_durable = durable
        self._known: set[Path] = set()
        self._lock = threading.Lock()

    def make(self, directory: Path) -> None:
        """Make a directory and its parents; each name is synced into its parent.

        Also one that is already there is synced, once: another process may have made it and died
        before its sync. What is above a root that exists is not ours to sync.
        """
        todo: list[Path] = []
        for each in (directory, *directory.parents):
            if each in self._known or (self._root.is_relative_to(each) and each.is_dir()):
                break
            todo.append(each)
        for each in reversed(todo):
            try:
                each.mkdir()
            except FileExistsError:
                if not each.is_dir():
                    raise StoreError(
                        f"{each} is an object and can't be a directory too", path=str(each)
                    ) from None
            if self._is_durable:
                sync_directory(each.parent)
            with self._lock:
                self._known.add(each)

    def forget(self) -> None:
        """Look again next time: somebody removed a directory."""
        with self._lock:
            self._known.clear()


def sync_directory(directory: Path) -> None:
    """Make the names in a directory durable."""
    descriptor = os.open(directory, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some filesystems sync names on their own and refuse to be asked.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def write_all(
    temp: Path,
    chunks: Iterable[bytes | bytearray | memoryview],
    *,
    path: str,
    root: Path,
    durable: bool = True,
) -> None:
    """Write and sync a file; errors of the chunks themselves pass through as they are."""
    with translated(path, root=root):
        file = temp.open("wb")
    try:
        for chunk in chunks:
            with translated(path, root=root):
                file.write(chunk)
        with translated(path, root=root):
            file.flush()
            if durable:
                os.fsync(file.fileno())
    finally:
        # What could not be written before is tried once more when it is closed.
        with translated(path, root=root):
            file.close()
