"""Files of this machine: what is there, whether it can be copied, its bytes in pieces.

Links are followed. What is neither a file nor a directory, and directories that lie within
themselves, are refused before anything is copied.
"""

from __future__ import annotations

import errno
import glob
import os
import stat
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from millpond.base.errors import (
    LinkLoopError,
    MillpondError,
    ObjectNotFoundError,
    PathSyntaxError,
    PathTypeError,
    StoreError,
)
from millpond.steward.rows.host import host_files, nearby, no_access

if TYPE_CHECKING:
    from collections.abc import Iterator

CHUNK_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class HostItem:
    """A file or a directory below what was named."""

    path: str
    names: tuple[str, ...]
    """The names down from what was named, whose own name is the first."""
    size: int
    is_directory: bool


def find_items(path: str) -> list[HostItem]:
    """Return what a path or pattern names, directories with all that is in them, as `cp -r` does.

    A directory comes before what is below it.
    """
    plain = path.rstrip("/") or "/"
    tops = [plain] if os.path.lexists(plain) else _matches(plain)
    return [item for top in tops for item in _walk(top)]


def _matches(pattern: str) -> list[str]:
    """Return the files and directories that a pattern matches, none of them below another one.

    `**` at the end matches each file by itself, at any depth.
    """
    if pattern.rpartition("/")[2] == "**":
        return host_files(pattern)
    found = {name.rstrip("/") for name in glob.glob(pattern, recursive=True)}  # noqa: PTH207
    tops = sorted(name for name in found if not found.intersection(map(str, Path(name).parents)))
    return tops or host_files(pattern)  # which says what is there instead


def _walk(top: str) -> Iterator[HostItem]:
    name = Path(top).name
    if not name:
        raise PathSyntaxError(
            f"{top} has no name of its own", path=top, hint="name the directories in it"
        )
    first = _look(top, (name,))
    yield first[0]
    todo = [(first[0], frozenset({first[1]}))] if first[0].is_directory else []
    while todo:
        where, above = todo.pop()
        inner: list[tuple[HostItem, frozenset[tuple[int, int]]]] = []
        for child in _names(where.path):
            item, identity = _look(str(Path(where.path) / child), (*where.names, child))
            if item.is_directory:
                if identity in above:
                    raise LinkLoopError(
                        f"{item.path} leads back to a directory above it",
                        path=item.path,
                        hint="remove the link, or copy the directories one by one",
                    )
                inner.append((item, above | {identity}))
            yield item
        todo += reversed(inner)


def _names(path: str) -> list[str]:
    with translated(path):
        return sorted(os.listdir(path))  # noqa: PTH208 - names alone, also odd ones


def _look(path: str, names: tuple[str, ...]) -> tuple[HostItem, tuple[int, int]]:
    with translated(path):
        found = os.stat(path)  # noqa: PTH116 - links are followed
    is_directory = stat.S_ISDIR(found.st_mode)
    if not is_directory and not stat.S_ISREG(found.st_mode):
        raise PathTypeError(
            f"{path} is {_kind(found.st_mode)}, and only files and directories can be copied",
            path=path,
            hint="leave it out: name the other files one by one",
        )
    wanted = os.R_OK | (os.X_OK if is_directory else 0)
    if not os.access(path, wanted, effective_ids=os.access in os.supports_effective_ids):
        raise no_access(path)
    size = 0 if is_directory else found.st_size
    return HostItem(path, names, size, is_directory), (found.st_dev, found.st_ino)


def _kind(mode: int) -> str:
    kinds = (
        (stat.S_ISFIFO, "a pipe"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISBLK, "a device"),
        (stat.S_ISCHR, "a device"),
    )
    return next((name for is_kind, name in kinds if is_kind(mode)), "no file")


def check_outside(path: str, location: str) -> None:
    """Refuse a file or directory of a pond itself: only the pond may look after those."""
    inside = os.path.realpath(location)
    real = os.path.realpath(path)
    if real == inside or real.startswith(f"{inside}/"):
        raise PathTypeError(
            f"{path} belongs to the pond itself, at {location}",
            path=path,
            hint="name other files or directories, one by one",
        )


def read_chunks(path: str) -> Iterator[bytes]:
    """The bytes of a file in pieces."""
    with translated(path), Path(path).open("rb") as source:
        while chunk := source.read(CHUNK_BYTES):
            yield chunk


@contextmanager
def translated(path: str) -> Iterator[None]:
    """Turn the system's errors about a file of this machine into ours."""
    try:
        yield
    except MillpondError:
        raise
    except FileNotFoundError as error:
        if Path(path).is_symlink():
            raise ObjectNotFoundError(
                f"{path} is a link to {os.readlink(path)}, which is not there",  # noqa: PTH115
                path=path,
                hint="remove the link, or make what it leads to",
            ) from error
        raise ObjectNotFoundError(
            f"there is no file {path}", path=path, hint=nearby(path)
        ) from error
    except PermissionError as error:
        raise no_access(path) from error
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise LinkLoopError(
                f"{path} is a link that leads round in a circle", path=path, hint="remove the link"
            ) from error
        hint = "free some space and try again" if error.errno == errno.ENOSPC else None
        raise StoreError(f"{path}: {error.strerror or error}", path=path, hint=hint) from error
