"""A directory tree in the order of its paths' UTF-8 bytes, one directory in memory at a time.

Within a directory, `a-b`, `a/` and `a0` must come in this order, so a directory sorts with its
slash. Whole subtrees that a prefix or a start excludes are not opened.
"""

from __future__ import annotations

import contextlib
import math
import os
from typing import TYPE_CHECKING

from millpond.base.errors import StoreAccessError
from millpond.base.store.path import TEMP_PREFIX, is_leftover, is_path

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def walk(
    root: Path, *, prefix: str = "", start_after: str | None = None, leftovers: bool = False
) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Files below `root` with their paths; either objects, or only what dead puts left behind."""
    first = prefix.encode()
    behind = b"" if start_after is None else start_after.encode()
    base = prefix.rpartition("/")[0]
    stack = [iter(_entries(root.joinpath(*base.split("/")) if base else root, base))]
    while stack:
        step = next(stack[-1], None)
        if step is None:
            stack.pop()
            continue
        key, path, entry = step
        if key.endswith(b"/"):
            in_prefix = key.startswith(first) or first.startswith(key)
            if in_prefix and (key > behind or behind.startswith(key)):
                stack.append(iter(_entries(entry.path, path)))
        elif is_leftover(path) == leftovers and key.startswith(first) and key > behind:
            yield path, entry


def remove_empty_directories(root: Path, *, before: float) -> None:
    """Remove directories below `root` that hold nothing and were last changed before a time.

    A directory that only holds such directories is removed as well.
    """
    # All times are read first: a directory that loses an empty one is changed by that.
    places = [(place, _changed(place)) for place, _, _ in os.walk(root, topdown=False)]
    for place, changed in places:
        if place != str(root) and changed < before:
            with contextlib.suppress(OSError):  # it is in use, or another process has removed it
                os.rmdir(place)  # noqa: PTH106 - there may be many


def _changed(directory: str) -> float:
    try:
        return os.stat(directory).st_mtime  # noqa: PTH116
    except OSError:  # another process has removed it
        return math.inf


def _entries(directory: str | Path, parent: str) -> list[tuple[bytes, str, os.DirEntry[str]]]:
    """What a directory holds, sorted; a directory that has just vanished holds nothing."""
    found = []
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                name = entry.name
                if not (is_path(name) or name.startswith(TEMP_PREFIX)):
                    continue
                path = f"{parent}/{name}" if parent else name
                if entry.is_dir():
                    found.append((f"{path}/".encode(), path, entry))
                elif entry.is_file():
                    found.append((path.encode(), path, entry))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except PermissionError as error:
        raise StoreAccessError(
            f"no access to the directory {directory}", path=parent, hint="check owner and mode"
        ) from error
    return sorted(found, key=lambda item: item[0])
